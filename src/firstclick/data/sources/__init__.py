"""Where data comes from: one file a source, all giving `Interactions`."""

from firstclick.data.sources.source import Progress, Source, make_source, silent, source_classes

__all__ = ["Progress", "Source", "make_source", "silent", "source_classes"]
