// Keeps the page up to date while somebody looks at it: the server sends the parts that are new.
import { children } from "./morph.js";
import { show } from "./times.js";

const main = document.querySelector("main[data-live]");
const stale = document.getElementById("stale");
const staleAfter = 10000, checkEvery = 2000, comeBack = 3000;

let source, heard = Date.now(), paused = false, again;
const waiting = new Map(); // parts that are new, by their numbers

// A part is left alone while its visitor types there, or has begun to.
function busy(part) {
  const fields = [...part.querySelectorAll("input:not([type=hidden]), textarea, select")];
  return fields.some((f) => f === document.activeElement || f.checked !== f.defaultChecked || f.defaultValue !== undefined && f.value !== f.defaultValue);
}

function put(number, { mark, html }) {
  const part = main.querySelectorAll(":scope > [data-mark]")[number];
  if (!part) return location.reload(); // another page than this one was
  if (busy(part)) return;
  const next = document.createElement("template");
  next.innerHTML = html;
  show(next.content);
  const focus = document.activeElement, at = part.contains(focus) ? focus.href : undefined;
  children(part, next.content);
  part.dataset.mark = mark;
  waiting.delete(number);
  if (at && document.activeElement.href !== at) [...part.querySelectorAll("a")].find((a) => a.href === at)?.focus();
}

function hear() {
  heard = Date.now();
  tell();
  if (!paused) waiting.forEach((part, number) => put(number, part));
}

function tell() {
  const old = Date.now() - heard > staleAfter;
  let text = "";
  if (paused) text = "Paused: this is how it was. The key . goes on.";
  else if (old) text = `The server has not answered since ${new Date(heard).toLocaleTimeString()}: this is how it was then.`;
  if (stale.textContent !== text) stale.textContent = text;
  main.classList.toggle("old", old && !paused);
}

// begin opens the stream. What the page has already is not sent again.
function begin() {
  end();
  const have = [...main.querySelectorAll(":scope > [data-mark]")].map((p) => p.dataset.mark).join(" ");
  source = new EventSource(`${main.dataset.live}&have=${encodeURIComponent(have)}`);
  source.addEventListener("part", ({ data }) => {
    const first = data.indexOf("\n"), [number, mark] = data.slice(0, first).split(" ");
    waiting.set(Number(number), { mark, html: data.slice(first + 1) });
    hear();
  });
  source.addEventListener("quiet", hear);
  source.addEventListener("over", () => location.reload());
  source.addEventListener("error", () => source.readyState === EventSource.CLOSED && retry());
}

function end() {
  source?.close();
  clearTimeout(again);
}

// retry finds out why there is no stream: the page says it, where that is for its visitor to see.
async function retry() {
  end();
  const reply = await fetch(location.href).catch(() => undefined);
  if (reply && [401, 403, 404].includes(reply.status)) return location.reload();
  again = setTimeout(begin, comeBack * (1 + Math.random()));
}

// pause keeps the page as it is, or goes on.
export function pause() {
  if (!main) return;
  paused = !paused;
  hear();
}

if (main) {
  const look = () => (document.hidden ? end() : (heard = Date.now(), begin()));
  document.addEventListener("visibilitychange", look);
  setInterval(() => document.hidden || tell(), checkEvery);
  if (!document.hidden) begin();
}
