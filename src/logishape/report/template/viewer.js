// The six views with what they share: crosshair, window, contours, overlay, and the words about the cursor.

async function startViewer(scene) {
  const names = Object.keys(scene.volumes);
  const read = await Promise.all(names.map((name) => readVolume(scene.volumes[name])));
  const volumes = Object.fromEntries(names.map((name, k) => [name, read[k]]));
  const state = makeState(scene, volumes);
  state.views = scene.views.map((spec) => makeView(spec, volumes, state, (point) => move(state, point)));
  document.getElementById("views").append(...state.views.map((view) => view.element));
  connect(state);
  addEventListener("resize", () => redraw(state));
  redraw(state);
  return state;
}

function makeState(scene, volumes) {
  const state = {
    volumes, unit: scene.unit, ramps: scene.ramps, start: scene.start, usualWindow: scene.window,
    point: scene.start, window: scene.window, overlay: "none", cursor: null, drag: null, isWaiting: false,
    shown: { segmentation: true, shape: true, band: true, crosshair: true },
  };
  state.hover = (view, event) => {
    state.cursor = event && { view, clientX: event.clientX, clientY: event.clientY };
    tell(state);
  };
  state.setWindow = (level, width) => setWindow(state, level, width);
  state.reset = () => move(state, state.start);
  return state;
}

function move(state, point) {
  state.point = point;
  redraw(state);
}

// All views at the next frame, however often it is asked for before.
function redraw(state) {
  if (state.isWaiting) return;
  state.isWaiting = true;
  requestAnimationFrame(() => {
    state.isWaiting = false;
    for (const view of state.views) draw(view);
    tell(state);
    document.getElementById("viewer").dataset.drawn = String(Number(document.getElementById("viewer").dataset.drawn ?? 0) + 1);
  });
}

function setWindow(state, level, width) {
  const least = (state.usualWindow[1] - state.usualWindow[0]) / 100;
  const half = Math.max(width, least) / 2;
  state.window = [level - half, level + half];
  showWindow(state);
  redraw(state);
}

// Place, value, probability and distance at the cursor, or at the crosshair while there is no cursor. The slice below the
// cursor may change while it rests, so its point is found anew.
function tell(state) {
  const { cursor } = state, point = cursor ? pointUnder(cursor.view, cursor) : state.point;
  const { ct, marginal, level } = state.volumes;
  const [x, y, z] = point.map((one) => signed(one.toFixed(2)));
  const words = [`x ${x}  y ${y}  z ${z} mm (RAS)`];
  const value = valueAt(ct, point);
  if (Number.isNaN(value)) words.push("outside the stored part of the CT");
  else {
    words.push(`${formatValue(state, value)} ${state.unit || "(image value)"}`);
    words.push(`probability ${valueAt(marginal, point).toFixed(2)}`, distanceWords(valueAt(level, point)));
  }
  document.getElementById("readout").textContent = `${cursor ? "Cursor" : "Crosshair"}: ${words.join(" · ")}`;
}

function formatValue(state, value) {
  const width = state.usualWindow[1] - state.usualWindow[0];
  return signed(value.toFixed(width > 100 ? 0 : width > 1 ? 2 : 4));
}

// With a proper minus sign, and none before a zero.
function signed(number) {
  return Number(number) === 0 ? number.replace("-", "") : number.replace("-", "\u2212");
}

function distanceWords(level) {
  if (level <= -1.19) return "more than 1.2 mm outside the shape";
  return `${Math.abs(level).toFixed(2)} mm ${level < 0 ? "outside" : "inside"} the shape`;
}

function connect(state) {
  for (const box of document.querySelectorAll("#toolbar input[data-shows]")) {
    box.addEventListener("change", () => {
      state.shown[box.dataset.shows] = box.checked;
      redraw(state);
    });
    state.shown[box.dataset.shows] = box.checked; // browsers keep a box's state over a reload
  }
  const overlay = document.getElementById("overlay");
  const choose = () => {
    state.overlay = overlay.value;
    showLegend(state);
    redraw(state);
  };
  overlay.addEventListener("change", choose);
  choose();
  const [level, width] = ["level", "width"].map((name) => document.getElementById(name));
  const [low, high] = state.usualWindow;
  Object.assign(level, { min: low - (high - low) / 2, max: high + (high - low) / 2, step: (high - low) / 200 });
  Object.assign(width, { min: (high - low) / 20, max: 2.5 * (high - low), step: (high - low) / 200 });
  for (const slider of [level, width]) {
    slider.addEventListener("input", () => setWindow(state, Number(level.value), Number(width.value)));
  }
  showWindow(state);
  document.getElementById("reset-window").addEventListener("click", () => setWindow(state, (low + high) / 2, high - low));
  document.getElementById("reset-point").addEventListener("click", () => state.reset());
}

function showWindow(state) {
  const [low, high] = state.window;
  for (const [name, value] of [["level", (low + high) / 2], ["width", high - low]]) {
    document.getElementById(name).value = value;
    document.getElementById(`${name}-value`).textContent = `${formatValue(state, value)} ${state.unit}`;
  }
}

function showLegend(state) {
  const legend = document.getElementById("legend");
  legend.hidden = state.overlay === "none";
  if (legend.hidden) return;
  const stops = state.ramps[state.overlay].map((colour) => `rgb(${colour.join(" ")})`);
  legend.querySelector(".ramp").style.background = `linear-gradient(to right, ${stops.join(", ")})`;
  legend.querySelector(".words").textContent =
    state.overlay === "probability" ? "marginal probability that a voxel is cochlea" : "uncertainty of a voxel's label, bits";
}
