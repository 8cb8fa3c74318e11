// What the pages gain from a script: live parts by one stream, hover, keys. Without it they are whole, but stand still.

const view = document.body.dataset.view;
const age = document.getElementById("age");

// --- the stream ---------------------------------------------------------------------------------------------------

let source = null;
let heardAt = 0;
let behind = 0; // milliseconds by which what is shown was older than its arrival
let trouble = "";

function open() {
  if (source || !view || document.hidden) return;
  source = new EventSource(`/dashboard/events?view=${view}`);
  source.addEventListener("picture", (event) => show(JSON.parse(event.data)));
  source.addEventListener("trouble", (event) => {
    trouble = JSON.parse(event.data).word;
    tell();
  });
  source.addEventListener("error", () => {
    if (source && source.readyState === EventSource.CLOSED) {
      // Refused, not cut: the session may have ended.
      close();
      trouble = "refused: load the page again";
      tell();
      setTimeout(open, 5000);
    }
  });
}

function close() {
  if (source) source.close();
  source = null;
}

function show(picture) {
  trouble = "";
  heardAt = Date.now();
  for (const [id, html] of Object.entries(picture.elements)) renew(document.getElementById(id), html, false);
  for (const [id, html] of Object.entries(picture.rows)) renew(document.getElementById(id), html, true);
  tell();
}

function isUsed(element) {
  const active = document.activeElement;
  return element.contains(active) && active.matches("a, button, input, select, summary, textarea");
}

function renew(element, html, whole) {
  if (!element || isUsed(element)) return; // never under somebody's fingers
  if (whole) element.outerHTML = html;
  else element.innerHTML = html;
  localise(element.isConnected ? element : document);
}

function tell() {
  if (!age || !heardAt) return;
  const seconds = (Date.now() - heardAt + behind) / 1000;
  const stale = seconds > 3 || trouble !== "";
  age.classList.toggle("live", !stale);
  age.classList.toggle("stale", stale);
  const said = stale ? `data is ${Math.round(seconds)} s old${trouble && ` · ${trouble}`}` : "live";
  if (age.textContent !== said) age.textContent = said;
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
window.addEventListener("pagehide", close);
setInterval(tell, 500);
open();

// --- a page that follows its job ----------------------------------------------------------------------------------

const here = new URL(location.href);
if (here.searchParams.has("said")) {
  // What was done is said once, not again at every look.
  here.searchParams.delete("said");
  history.replaceState(null, "", here);
}
const main = document.getElementById("main");
if (main && main.hasAttribute("data-follow")) {
  setInterval(async () => {
    if (document.hidden || isUsed(main) || main.querySelector("details[open]")) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok || answer.redirected) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("main");
      if (fresh && !isUsed(main) && fresh.innerHTML !== main.innerHTML) {
        main.innerHTML = fresh.innerHTML;
        localise(main);
      }
    } catch {
      // The age of the data tells that the server is away.
    }
  }, 3000);
}

// --- instants: the reader's own time on hover ---------------------------------------------------------------------

function localise(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([data-local])")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) time.title = `${time.dateTime}\n${at.toLocaleString()} here`;
    time.dataset.local = "";
  }
}
localise(document);

// --- the heat map: slots and lag of a cell on hover ---------------------------------------------------------------

const tip = document.createElement("div");
tip.id = "tip";
tip.hidden = true;
document.body.append(tip);

function slotsOf(strip, cell) {
  const group = Number(strip.dataset.group);
  let skip = cell * group;
  const found = [];
  let left = group;
  for (const arc of strip.dataset.arcs.split(",")) {
    const [lo, hi] = arc.split("-").map(Number);
    const length = hi - lo + 1;
    if (skip < length && left > 0) {
      const first = lo + skip;
      const last = Math.min(hi, first + left - 1);
      found.push(first === last ? `${first}` : `${first}–${last}`);
      left -= last - first + 1;
      skip = 0;
    } else skip -= length;
    if (left === 0) break;
  }
  return found.join(", ");
}

document.addEventListener("pointermove", (event) => {
  const strip = event.target.closest?.(".strip");
  const box = strip?.getBoundingClientRect();
  const cell = strip ? Math.floor(((event.clientX - box.left) / box.width) * 64) : -1;
  const slots = strip ? slotsOf(strip, cell) : "";
  tip.hidden = slots === "";
  if (tip.hidden) return;
  const late = strip.dataset.late.split(",").find((one) => one.startsWith(`${cell}:`));
  const [, lag, due] = (late ?? "::").split(":");
  const owner = strip.classList.contains("unowned") ? "no owner\n" : "";
  tip.textContent = `${owner}slots ${slots}\n${late ? `oldest ${lag} s, ${due} due` : "nothing waits"}`;
  const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
  tip.style.left = `${Math.min(event.clientX + 12, room)}px`;
  tip.style.top = `${event.clientY + 16}px`;
});

// --- keys ---------------------------------------------------------------------------------------------------------

let going = false;
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  if (event.key === "Escape" && typing) return event.target.blur();
  if (typing || event.metaKey || event.ctrlKey || event.altKey) return;
  if (going) {
    going = false;
    document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`)?.click();
  } else if (event.key === "g") going = true;
  else if (event.key === "/") {
    event.preventDefault();
    document.getElementById("q")?.focus();
  } else if (event.key === "?") {
    const keys = document.getElementById("keys");
    keys.open = !keys.open;
    keys.scrollIntoView({ block: "end" });
  }
});
