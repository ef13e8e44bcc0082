// Fetches the page anew every two seconds while somebody looks at it, and puts what is new in
// place of what was there. What is open stays open, and the focus stays where it is.
const every = 2000;
const stale = document.getElementById("stale");

function keepOpen(from, to) {
  const before = from.querySelectorAll("details");
  to.querySelectorAll("details").forEach((d, i) => {
    d.open = before[i]?.open ?? false;
  });
}

// A form that somebody began to fill in stays as it is.
function touched(main) {
  return [...main.querySelectorAll("input, textarea, select")].some((f) => f.type !== "hidden" && (f.checked !== f.defaultChecked || f.defaultValue !== undefined && f.value !== f.defaultValue));
}

async function renew() {
  const main = document.querySelector("main[data-live]");
  if (!main || document.hidden || main.contains(document.activeElement) && document.activeElement !== main || touched(main)) return;
  try {
    const reply = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (reply.status === 401) location.reload(); // the login has ended
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    const next = page.querySelector("main");
    if (!reply.ok || !next) throw new Error(reply.statusText);
    keepOpen(main, next);
    main.replaceChildren(...next.childNodes);
    stale.textContent = "";
  } catch {
    if (stale.textContent === "") stale.textContent = `The server has not answered since ${new Date().toLocaleTimeString()}.`;
  }
}

setInterval(renew, every);
document.addEventListener("visibilitychange", renew);
