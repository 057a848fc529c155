"""The items: ids, features, groups, the file they come from, and the tree they are searched by."""
