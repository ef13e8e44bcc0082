// Exact times are in UTC, or in the visitor's zone.
import { get, set } from "./settings.js";

const local = () => get("local", "off") === "on";

function text(instant) {
  const at = new Date(instant);
  if (!local()) return at.toISOString().replace("T", " ").replace("Z", " UTC");
  const here = new Date(at - at.getTimezoneOffset() * 60000);
  const zone = new Intl.DateTimeFormat(undefined, { timeZoneName: "short" }).formatToParts(at).find((p) => p.type === "timeZoneName").value;
  return here.toISOString().replace("T", " ").replace("Z", ` ${zone}`);
}

// show writes the exact times of a page, or of a part of one.
export function show(part) {
  for (const time of part.querySelectorAll("time[datetime]")) {
    if ("exact" in time.dataset) time.textContent = text(time.dateTime);
    else time.title = text(time.dateTime);
  }
}

// toggle shows them in the other zone.
export function toggle() {
  set("local", local() ? "off" : "on");
  show(document);
}
