// Makes what is on a page the same as what it should be, and leaves alone what is the same already:
// the focus, what is open, and how far something is scrolled.
const ours = (e, name) => name === "open" && e.tagName === "DETAILS"; // the visitor opens and closes

function attributes(from, to) {
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !ours(from, name)) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (from.getAttribute(name) !== value && !ours(from, name)) from.setAttribute(name, value);
  }
}

function node(from, to) {
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) {
    from.replaceWith(to);
  } else if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.data !== to.data) from.data = to.data;
  } else {
    attributes(from, to);
    children(from, to);
  }
}

// children makes those of an element the same as those of another one, which is used up.
export function children(from, to) {
  const were = [...from.childNodes], are = [...to.childNodes];
  are.forEach((child, i) => (i < were.length ? node(were[i], child) : from.append(child)));
  were.slice(are.length).forEach((child) => child.remove());
}
