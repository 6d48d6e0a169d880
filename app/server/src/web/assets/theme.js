// Runs before the page is drawn, so that a chosen theme does not flash.
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // A browser that keeps nothing follows the system.
}
