// The page comes alive where the browser can; else its still pictures stay.

async function start() {
  const scene = JSON.parse(document.getElementById("scene").textContent);
  const root = document.documentElement;
  if (canUnpack()) {
    await startViewer(scene);
    root.classList.add("has-views");
    await startSurface({ ...scene.surface, ramps: scene.ramps }, (is) => root.classList.toggle("has-surface", is));
  }
  root.dataset.state = "ready";
}

start().catch((error) => {
  document.documentElement.dataset.state = "failed";
  throw error;
});
