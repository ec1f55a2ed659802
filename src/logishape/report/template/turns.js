// How the surface is turned without a mouse: buttons for views, keys for steps.

const TURN_DEGREES = 15, FARTHER = 1.15;
const AWAY_MM = 14.5, WIDE = 1.25; // a place so many times as wide as high shows all from there
const TURNS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

// Where plotly's camera stands: at the apex, at the side, or oblique, between both. In a narrow place it steps back.
function cameraOf(surface, name, place) {
  const [x, y, z] = surface.axes, factor = Math.max(1, (WIDE * place.clientHeight) / Math.max(place.clientWidth, 1));
  const mixes = { apex: [0, -0.01, 1], side: [0, -1, 0.1], oblique: [0.34, -0.7, 0.87] };
  const distance = (AWAY_MM / (2 * SPACE_MM)) * factor; // in sides of the cube of space that plotly shows
  const eye = mixes[name].reduce((sum, one, k) => along(sum, one * distance, [x, y, z][k]), [0, 0, 0]);
  const up = name === "apex" ? y : z;
  return { eye: asPlace(eye), up: asPlace(up), center: asPlace([0, 0, 0]) };
}

function asPlace([x, y, z]) {
  return { x, y, z };
}

function listenToTurns(place, surface) {
  const show = (camera) => Plotly.relayout(place, { "scene.camera": camera });
  for (const button of document.querySelectorAll("[data-sight]")) {
    button.addEventListener("click", () => show(cameraOf(surface, button.dataset.sight, place)));
  }
  place.addEventListener("keydown", (event) => {
    const camera = place._fullLayout.scene._scene.getCamera();
    if (TURNS[event.key]) show(turned(camera, ...TURNS[event.key]));
    else if (event.key === "+" || event.key === "=") show(moved(camera, 1 / FARTHER));
    else if (event.key === "-") show(moved(camera, FARTHER));
    else if (event.key === "Home") show(cameraOf(surface, "oblique", place));
    else return;
    event.preventDefault();
  });
}

// The camera after steps to the right about what is up for it, and upwards.
function turned(camera, right, up) {
  const eye = [camera.eye.x, camera.eye.y, camera.eye.z];
  const stored = [camera.up.x, camera.up.y, camera.up.z], toEye = unit(eye);
  const upward = unit(along(stored, -dot(stored, toEye), toEye));
  const angle = (TURN_DEGREES * Math.PI) / 180;
  if (right) return { ...camera, eye: asPlace(rotated(eye, upward, right * angle)), up: asPlace(upward) };
  const axis = cross(toEye, upward);
  return { ...camera, eye: asPlace(rotated(eye, axis, up * angle)), up: asPlace(rotated(upward, axis, up * angle)) };
}

function moved(camera, factor) {
  const { x, y, z } = camera.eye;
  return { ...camera, eye: { x: x * factor, y: y * factor, z: z * factor } };
}

function unit(vector) {
  const length = Math.hypot(...vector);
  return vector.map((one) => one / length);
}

function cross(a, b) {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}

// A vector turned about an axis of length one (Rodrigues).
function rotated(vector, axis, angle) {
  const cosine = Math.cos(angle), sine = Math.sin(angle);
  const turnedPart = cross(axis, vector), kept = dot(axis, vector) * (1 - cosine);
  return vector.map((one, k) => one * cosine + turnedPart[k] * sine + axis[k] * kept);
}
