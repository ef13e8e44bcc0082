// Shows what would become of a form while it is filled in, and what is wrong with it. Without this the
// button for it does the same.
import { children } from "./morph.js";
import { show } from "./times.js";

const restFor = 400; // after the last key
const form = document.querySelector("form[data-preview]"), preview = document.getElementById("preview");
let rest, asked;

// mistake shows at a field what the answer says of it, and leaves the field itself alone.
function mistake(field, told) {
  const label = field.labels?.[0], said = told?.labels?.[0]?.querySelector(".bad");
  if (!label) return;
  label.querySelector(".bad")?.remove();
  field.removeAttribute("aria-invalid");
  if (!said) return;
  field.setAttribute("aria-invalid", "true");
  label.append(said);
}

async function ask() {
  asked?.abort();
  asked = new AbortController();
  const { signal } = asked;
  const reply = await fetch(form.dataset.preview, { method: "POST", body: new URLSearchParams(new FormData(form)), signal }).catch(() => undefined);
  const text = await reply?.text().catch(() => undefined);
  if (!text || signal.aborted) return;
  const page = new DOMParser().parseFromString(text, "text/html"), told = page.querySelector("form[data-preview]"), next = page.getElementById("preview");
  if (!told || !next) return; // such as a page that asks for the login
  for (const field of form.elements) if (field.name && field.type !== "hidden") mistake(field, told.elements[field.name]);
  show(next);
  children(preview, next);
}

form?.addEventListener("input", () => {
  clearTimeout(rest);
  rest = setTimeout(ask, restFor);
});
