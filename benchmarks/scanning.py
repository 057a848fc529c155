"""A catalog without the indexes that policies search."""

from firstclick.catalog.search_tree import no_tree
from firstclick.kernels.arrays import CatalogArrays
from firstclick.kernels.search.groups import new_groups
from firstclick.kernels.search.seen import nothing_seen
from firstclick.kernels.search.widths import no_widths


def scanning(catalog: CatalogArrays) -> CatalogArrays:
    """Return the same catalog without indexes: every search of it is a scan."""
    tree = no_tree(catalog.features.shape[1])
    return catalog._replace(tree=tree, widths=no_widths(), groups=new_groups(0), seen=nothing_seen())
