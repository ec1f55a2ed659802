// What stands beside the surface: the centreline with a mark every 90 degrees, the modiolar axis, arms of 2 mm, labels.

const AXIS_MM = [-2, 5.5], TICK_MM = [1.1, 0.6], ARM_MM = 2; // ticks of the first turn, and of the smaller ones above
const CROWDED = 540; // degrees: beyond it, and in a narrow place, every second mark is named
const NARROW = 600; // pixels
const LINE_COLOUR = "#e02020", AXIS_COLOUR = "#2ca02c", ARM_COLOUR = "#8a8a8a";

// A trace through points, with gaps at null.
function pathOf(points) {
  const [x, y, z] = [0, 1, 2].map((k) => points.map((point) => point && point[k]));
  return { type: "scatter3d", x, y, z, hoverinfo: "skip", mode: "lines" };
}

function lineOf(surface) {
  const { angle, points } = surface.line;
  const text = angle.map((one) => `${one.toFixed(0)}°`);
  return { ...pathOf(points), line: { color: LINE_COLOUR, width: 5 }, text, hoverinfo: "text" };
}

// From the centreline outwards every 90 degrees: [degrees, inner end, outer end].
function marksOf(surface) {
  const { angle, points } = surface.line, found = [];
  for (let degrees = 0; degrees <= angle.at(-1); degrees += 90) {
    const after = Math.max(1, angle.findIndex((one) => one >= degrees));
    const share = (degrees - angle[after - 1]) / (angle[after] - angle[after - 1]);
    const centre = along(points[after - 1], share, minus(points[after], points[after - 1]));
    found.push([degrees, centre, along(centre, TICK_MM[degrees > 360 ? 1 : 0], awayFromAxis(surface, centre))]);
  }
  return found;
}

function awayFromAxis(surface, point) {
  const from = minus(point, surface.origin), z = surface.axes[2];
  const across = along(from, -dot(from, z), z);
  return across.map((one) => one / Math.max(Math.hypot(...across), 1e-6));
}

function ticksOf(surface) {
  const points = marksOf(surface).flatMap(([, from, to]) => [from, to, null]);
  return { ...pathOf(points), line: { color: LINE_COLOUR, width: 3 } };
}

function axisOf(surface) {
  const points = AXIS_MM.map((mm) => along(surface.origin, mm, surface.axes[2]));
  return { ...pathOf(points), line: { color: AXIS_COLOUR, width: 6, dash: "dash" } };
}

// Right, front and head, beside the surface and below it.
function armEnds(surface, { vertices }) {
  const [x, , z] = surface.axes, reach = [-Infinity, Infinity];
  for (let at = 0; at < vertices.length; at += 3) {
    const from = minus(vertices.subarray(at, at + 3), surface.origin);
    reach[0] = Math.max(reach[0], -dot(from, x));
    reach[1] = Math.min(reach[1], dot(from, z));
  }
  const corner = along(along(surface.origin, -reach[0] - 1.7 * ARM_MM, x), reach[1] - 0.5 * ARM_MM, z);
  return [[1, 0, 0], [0, 1, 0], [0, 0, 1]].map((arm) => [corner, along(corner, ARM_MM, arm)]);
}

function armsOf(surface, mesh) {
  const points = armEnds(surface, mesh).flatMap(([from, to]) => [from, to, null]);
  return { ...pathOf(points), line: { color: ARM_COLOUR, width: 4 } };
}

// Words that nothing hides, on what the page is made of.
function labelsOf(surface, mesh, place) {
  const backed = getComputedStyle(document.documentElement).getPropertyValue("--paper").trim();
  const label = (text, [x, y, z], more) => ({
    text, x, y, z, showarrow: false, font: { size: 11 }, bgcolor: backed, opacity: 0.85, borderpad: 1, ...more,
  });
  const arms = armEnds(surface, mesh);
  return [
    ...marksOf(surface)
      .filter(([degrees]) => (degrees <= CROWDED && place.clientWidth >= NARROW) || degrees % 180 === 0)
      .map(([degrees, , end]) => label(`${degrees}°`, end)),
    label("apex", along(surface.origin, AXIS_MM[1], surface.axes[2]), { yshift: 12 }),
    ...["right", "front", "head"].map((word, k) => label(word, arms[k][1], { font: { size: 11, color: ARM_COLOUR } })),
  ];
}
