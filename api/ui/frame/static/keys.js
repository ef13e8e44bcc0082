// Keys lead where a click does. One that would change something leads to its button only, so that
// no slip of a finger does anything.
import { pause } from "./live.js";
import { get } from "./settings.js";
import { toggle } from "./times.js";

const help = [
  ["?", "this help"], ["/", "search"], ["j  k  Enter", "next row, row before, open it"], ["x", "tick the row"], ["r", "to the button that retries"],
  ["e", "edit"], ["p", "to the button that pauses or resumes"], [".", "keep the page as it is, and go on"], ["L", "times here or in UTC"],
  ["g o", "topics"], ["g t", "the topic"], ["g k", "its tasks"], ["g d", "its dead letters"], ["g l", "its changes"], ["g b", "its operations"], ["g s", "schedules"], ["g f", "workflows"], ["g w", "workers"],
  ["g n", "nodes"], ["Esc", "close, or leave a field"],
];
const waitForSecond = 1500;
let went = 0; // when g was pressed

const find = (selector) => document.querySelector(`main ${selector}`) ?? document.querySelector(selector);
const typing = (e) => e.matches("input:not([type=checkbox]), textarea, select");
const rows = () => [...document.querySelectorAll("main tbody th a:first-of-type")];

function make(tag, ...inside) {
  const e = document.createElement(tag);
  e.append(...inside);
  return e;
}

function showHelp() {
  const dialog = make("dialog", make("h2", "Keys"), make("dl", ...help.flatMap(([key, does]) => [make("dt", make("kbd", key)), make("dd", does)])));
  const close = make("button", "Close");
  close.addEventListener("click", () => dialog.close());
  dialog.append(close);
  dialog.querySelector("dl").className = "fields";
  dialog.setAttribute("aria-label", "Keys");
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

// lead goes to what a key is for.
function lead(key) {
  const to = find(`[data-key~="${key}"]`);
  if (!to) return false;
  if (to.tagName === "A") to.click();
  else if (to.tagName === "DETAILS") {
    to.open = true;
    (to.querySelector("input:not([type=hidden]), textarea, select") ?? to.querySelector("summary")).focus();
  } else to.focus();
  return true;
}

function move(by) {
  const all = rows(), row = document.activeElement.closest("tr");
  const at = all.findIndex((a) => a.closest("tr") === row);
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
  all[next]?.focus();
}

function search() {
  const field = find("form[method=get] input:not([type=hidden])");
  field?.focus();
  field?.select();
}

// tick ticks the row of the focus, or takes the tick away.
function tick() {
  document.activeElement.closest("tr")?.querySelector("input[type=checkbox]")?.click();
}

const single = { "?": showHelp, "/": search, j: () => move(1), k: () => move(-1), x: tick, ".": pause, L: toggle, r: () => lead("r"), e: () => lead("e"), p: () => lead("p") };

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || get("keys", "on") === "off") return;
  if (key === "Escape") {
    went = 0;
    if (!document.querySelector("dialog[open]")) document.activeElement.blur();
    return;
  }
  if (typing(target) || document.querySelector("dialog[open]")) return;
  const second = event.timeStamp - went < waitForSecond && went > 0;
  went = 0;
  if (second) lead(`g${key}`);
  else if (key === "g") went = event.timeStamp;
  else if (Object.hasOwn(single, key)) single[key]();
  else return;
  event.preventDefault();
});
