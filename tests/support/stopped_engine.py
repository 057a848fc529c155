"""An engine that is killed after some tasks."""

from firstclick.experiments.engines import play_here


class Stopped(Exception):
    pass


def stop_after(number):
    """An engine that plays so many tasks and is then killed."""

    def engine(tasks, report):
        for played, result in enumerate(play_here(tasks, report)):
            if played == number:
                raise Stopped
            yield result

    return engine
