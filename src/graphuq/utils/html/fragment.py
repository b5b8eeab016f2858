"""Elements of HTML for notebooks: without a template, a script, or another package."""

import html


class Html(str):
    """Text that is HTML; all other text is escaped where it becomes part of an element."""

    __slots__ = ()


def element(tag: str, *children: object, **attributes: object) -> Html:
    """Return an HTML element. Children and values of attributes are escaped unless they are `Html`.

    Parameters
    ----------
    tag : str
        Name of the element.
    *children : object
        What it holds, as text or `Html`.
    **attributes : object
        A name that is a word of Python ends in an underscore, such as ``class_``; another
        underscore stands for a hyphen. An attribute whose value is None is left out.

    Examples
    --------
    >>> print(element("td", "<b>", class_="left", aria_label='"b"'))
    <td class="left" aria-label="&quot;b&quot;">&lt;b&gt;</td>
    """
    shown = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escaped(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Html(f"<{tag}{shown}>{joined(*children)}</{tag}>")


def joined(*children: object) -> Html:
    """Return pieces of HTML and of text, which is escaped, one after the other."""
    return Html("".join(escaped(child) for child in children))


def escaped(value: object) -> str:
    """Return a value as text that no browser reads as HTML, unless it is `Html` already."""
    text = value if isinstance(value, Html) else html.escape(str(value))
    # A lone surrogate, which no encoding knows, becomes a reference to a character.
    return text.encode("utf-8", "xmlcharrefreplace").decode("utf-8")
