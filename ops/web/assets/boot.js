// Paints the page before its scripts load: they take longer than what it shows at first.

let loading = false;

function load() {
  if (loading) return;
  loading = true;
  for (const link of document.querySelectorAll("link.module")) link.rel = "modulepreload";
  import("./main.js");
}

requestAnimationFrame(() => setTimeout(load));
setTimeout(load, 200); // a tab in the background has no animation frames
