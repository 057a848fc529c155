"""Read an HTML page."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """The tags, attributes, ids and visible text of a page."""

    def __init__(self, source):
        super().__init__()
        self.tags, self.attributes, self.ids, self.text = [], [], [], ""
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_data(self, data):
        self.text += data
