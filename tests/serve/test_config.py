import math
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick import FirstclickError
from firstclick.serve.config import (
    Settings,
    as_toml,
    flag,
    load_settings,
    shown_store,
    variable,
)

SECRET = "postgresql://shop:s3cret@db.example:5432/clicks"


def file(folder, content):
    path = folder / "serve.toml"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def refusal(flags=None, env=None, path=None):
    with pytest.raises(FirstclickError) as refused:
        load_settings(flags or {}, env or {}, path)
    return str(refused.value)


def test_every_setting_has_a_rule_a_sentence_a_flag_and_a_variable():
    rules = Settings.rules()
    assert list(rules) == [one.name for one in fields(Settings)]
    assert all(rule.help for rule in rules.values())
    assert (flag("token_days"), variable("token_days")) == ("--token-days", "FIRSTCLICK_TOKEN_DAYS")


def test_without_anything_there_are_the_defaults():
    settings, origins = load_settings({}, {}, None)
    assert settings == Settings()
    assert set(origins.values()) == {"default"}
    assert (settings.policy, settings.k, settings.store) == ("cascade-mixed", 6, "firstclick.db")
    assert (settings.host, settings.port, settings.catalog) == ("127.0.0.1", 8000, None)


def test_a_flag_comes_before_the_environment_and_that_before_the_file(tmp_path):
    path = file(tmp_path, 'port = 1\nk = 2\ndemo = true\nseed = 3\nname = "shop"\n')
    env = {"FIRSTCLICK_PORT": "4", "FIRSTCLICK_K": "5", "FIRSTCLICK_DEMO": "", "FIRSTCLICK_HOST": "::1"}
    settings, origins = load_settings({"port": 6, "seed": None, "allow_origin": []}, env, path)
    given = [name for name, origin in origins.items() if origin != "default"]
    assert {name: (getattr(settings, name), origins[name]) for name in given} == {
        "port": (6, "flag"), "k": (5, "FIRSTCLICK_K"), "host": ("::1", "FIRSTCLICK_HOST"),
        "demo": (True, "serve.toml"), "seed": (3, "serve.toml"), "name": ("shop", "serve.toml"),
    }  # fmt: skip
    assert settings.allow_origin == ()
    # A flag that says no is still a flag.
    assert load_settings({"demo": False}, env, path)[0].demo is False


def test_variables_of_others_are_left_alone():
    assert (
        load_settings({}, {"FIRSTCLICK_CACHE_DIR": "x", "FIRSTCLICK_DATA": "y", "PORT": "9"})[0] == Settings()
    )


def test_a_file_may_begin_with_a_mark_of_its_encoding(tmp_path):
    assert load_settings({}, {}, file(tmp_path, "\ufeffk = 2\n"))[0].k == 2


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("demo", "Yes", True), ("demo", "0", False), ("demo", "off", False), ("port", "80", 80),
        ("token_days", "0.5", 0.5), ("max_lag", "1e-3", 0.001), ("catalog", "a b.csv", Path("a b.csv")),
        ("allow_origin", "https://a.example, http://b:81", ("https://a.example", "http://b:81")),
        ("policy", "cascade-lin-ucb:c=0.5", "cascade-lin-ucb:c=0.5"), ("durability", "relaxed", "relaxed"),
    ],
)  # fmt: skip
def test_text_is_read_by_kind_from_variables_and_flags(name, text, value):
    for flags, env in (({}, {variable(name): text}), ({name: text}, {})):
        got = getattr(load_settings(flags, env)[0], name)
        assert (got, type(got)) == (value, type(value))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("prot = 1", "setting 'prot' is unknown; did you mean 'port'?"),
        ("[serve]\nport = 1", "setting 'serve' is unknown"),
        ("port = 1\nport = 2", "not a TOML file: "), ("port", "not a TOML file: "),
        (b"name = '\xe9'", "not a TOML file (bytes that are not UTF-8)"),
        ("port = 65536", "port must be"), ('port = "80"', "port must be"), ("k = true", "k must be"),
        ("token_days = inf", "token_days must be"), ("demo = 1", "demo must be"),
        (f"seed = {5000 * '9'}", "a number has too many digits"),
        (f"seed = 0x{5000 * 'f'}", "seed must be"), (f"demo = 0x{5000 * 'f'}", "demo must be"),
        ('durability = "none"', "durability must be one of full, relaxed"),
        ("catalog = 1", "catalog must be"), ('catalog = ""', "catalog must be"),
        ('store = ""', "store must be"),
        ('allow_origin = ["https://a.example/"]', "allow_origin must be"),
        ('no_click_after = "31d"', "no_click_after must be"),
    ],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_refused_with_its_name(tmp_path, content, message):
    sentence = refusal(path=file(tmp_path, content))
    assert sentence.startswith(f"serve.toml: {message}")
    assert len(sentence) < 300


ORIGINS = [
    "http://127.0.0.1:8000", "https://shop.example", "http://[::1]:8080", "https://a:80", "http://a_b-c:443",
    "https://xn--mller-kva.example", "http://localhost",
]  # fmt: skip
HINTS = {
    "https://a.example:443": "leave out the default port: https://a.example",
    "http://[::1]:80": "leave out the default port: http://[::1]",
    "https://m\u00fcller.example": "punycode", "https://*.shop.example": "no wildcards", "*": "no wildcards",
    "https://a b": "each origin by itself", "https://a.example/": "leave out the path",
    "https://Shop.example": "lower case", "shop.example": "begin with https:// or http://",
}  # fmt: skip
NOT_ORIGINS = [
    "null", "a.example", "ftp://a.example", "https://", "https://a:b@c", "https://a.example?x",
    "https://a:99999", "https://a:x", "https://[", "https://a:0", 5, "https://a.example:", "https://a:08443",
    "https://a..b", "https://127.1", "https://[::0001]", "https://[1.2.3.4]", "https://a%20b",
]  # fmt: skip


def test_only_origins_as_browsers_send_them_are_allowed():
    assert load_settings({"allow_origin": ORIGINS}, {})[0].allow_origin == tuple(ORIGINS)
    for origin in [*HINTS, *NOT_ORIGINS]:
        sentence = refusal({"allow_origin": [origin]})
        assert sentence.startswith("serve: --allow-origin must be origins of web pages")
        assert f"got {origin!r}" in sentence
        assert HINTS.get(origin, "") in sentence


def test_other_mistakes_say_where_they_were_made(tmp_path):
    assert refusal({"port": -1}).startswith("serve: --port must be")
    assert refusal(env={"FIRSTCLICK_PORT": "http"}).startswith("environment: FIRSTCLICK_PORT must be")
    assert refusal(env={"FIRSTCLICK_DEMO": "maybe"}).startswith("environment: FIRSTCLICK_DEMO must be")
    # Also where a flag comes before it: the file is wrong today, not on the day the flag is left out.
    assert refusal({"port": 1}, path=file(tmp_path, "port = -1")).startswith("serve.toml: port must be")
    missing = tmp_path / "none.toml"
    assert refusal(path=missing) == f"{missing}: no such file"
    assert "'prot'" in refusal({"prot": 1})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"policy": "cascade-lin"}, "did you mean 'cascade-lin-ts'?"),
        ({"policy": "cascade-ts:c=1"}, "no parameter 'c'"),
        ({"demo": True, "catalog": Path("a.csv")}, "demo brings its own catalog"),
        ({"max_body": 5000, "max_bulk_body": 4000}, "max_bulk_body must be at least max_body (5000)"),
        ({"store": "postgresql://shop:***@db/clicks"}, "*** in place of its password"),
    ],
)
def test_settings_that_do_not_go_together(given, words):
    assert words in refusal(given)


def test_the_printed_file_says_where_each_value_came_from(tmp_path):
    env = {"FIRSTCLICK_LOG_LEVEL": "debug"}
    settings, origins = load_settings({"k": 4}, env, file(tmp_path, 'name = "shop"'))
    lines = [" ".join(line.split()) for line in as_toml(settings, origins).splitlines()]
    assert len(lines) == 1 + len(fields(Settings))
    assert {
        "k = 4 # (flag) length of a slate of that model",
        'log_level = "debug" # (FIRSTCLICK_LOG_LEVEL) how much to log to stderr',
        'name = "shop" # (serve.toml) name of that model',
        "port = 8000 # (default) port to listen on; 0 for a free one",
        "# seed is not set # (default) random seed of that model; drawn by default",
    } <= set(lines)


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
whole = st.integers(1, 2**64 - 1)
some = st.fixed_dictionaries(
    {},
    optional={
        "catalog": texts.map(Path), "seed": st.integers(0, 2**64 - 1), "name": texts, "host": texts,
        "store": texts.map(lambda text: "clicks " + text), "port": st.integers(0, 65535),
        "token_days": st.floats(0, 36500, exclude_min=True), "max_batch": whole, "max_queue": whole,
        "snapshot_seconds": st.floats(0, math.inf, exclude_min=True, exclude_max=True),
        "policy": st.sampled_from(["random", "cascade-lin-ucb:c=0.5"]),
        "allow_origin": st.lists(st.sampled_from(["https://a.example", "http://b:81"])),
        "durability": st.sampled_from(["full", "relaxed"]),
    },
)  # fmt: skip


@given(some, texts)
def test_what_is_printed_loads_again_to_the_same_settings(tmp_path_factory, given, origin):
    settings = Settings(**given)
    origins = dict.fromkeys(Settings.rules(), origin)
    path = tmp_path_factory.getbasetemp() / "printed.toml"
    path.write_text(as_toml(settings, origins), encoding="utf-8", newline="")
    again, from_where = load_settings({}, {}, path)
    assert again == settings
    assert {name for name, where in from_where.items() if where == "printed.toml"} == {
        name for name in Settings.rules() if getattr(settings, name) is not None
    }


@pytest.mark.parametrize(
    ("store", "shown"),
    [
        (SECRET, "postgresql://shop:***@db.example:5432/clicks"),
        ("postgresql://shop:p@ss@db/clicks", "postgresql://shop:***@db/clicks"),
        ("postgresql://shop:p/ss@db/clicks", "postgresql://shop:***@db/clicks"),
        ("postgresql://:pass@db", "postgresql://:***@db"),
        ("postgresql://db/clicks?user=a&password=b&x=1", "postgresql://db/clicks?user=a&password=***&x=1"),
        ("host=db password = 'a \\' b' user=c", "host=db password = *** user=c"),
        ("postgresql://shop@db:5432/clicks", "postgresql://shop@db:5432/clicks"),
        ("postgresql://db:5432/clicks", "postgresql://db:5432/clicks"),
        ("folder/clicks.db", "folder/clicks.db"),
    ],
)
def test_a_password_is_not_shown(store, shown):
    assert shown_store(store) == shown
    settings = Settings(store=store)
    assert tomllib.loads(as_toml(settings, {}))["store"] == shown
    assert store not in repr(settings)


def test_a_printed_file_lacks_the_password_which_a_variable_gives(tmp_path):
    path = file(tmp_path, as_toml(Settings(store=SECRET, k=3), {}))
    assert "in place of its password" in refusal(path=path)
    settings, _ = load_settings({}, {"FIRSTCLICK_STORE": SECRET}, path)
    assert settings == Settings(store=SECRET, k=3)
