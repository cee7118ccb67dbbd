"use strict";
// runs before the first paint: show what needs scripts, and apply the stored color choice
document.documentElement.classList.add("script");
try {
  const theme = localStorage.getItem("cascaded-theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch {
  // no storage: use the system's choice
}
