// Values to pixels: grey by window, colours by ramp, and the band between two shells.

const OUTSIDE = 24; // grey of what the stored part of the CT does not show
const OVERLAY_OPACITY = 0.65;

// An image of the plane: the CT in grey, under an overlay, or the band, as they are asked for.
// samples: of ct, marginal, by name. look: window [low, high]; overlay and ramps; band as a colour, or null.
function paint(samples, look, image) {
  const { data } = image;
  const { ct, marginal } = samples;
  const [low, high] = look.window;
  for (let k = 0, at = 0; k < ct.length; k++, at += 4) {
    const grey = Number.isNaN(ct[k]) ? OUTSIDE : (255 * (ct[k] - low)) / (high - low);
    data[at] = data[at + 1] = data[at + 2] = grey; // clamped to 0 and 255 by the array
    data[at + 3] = 255;
    const p = marginal[k];
    if (Number.isNaN(p)) continue;
    if (look.overlay === "probability") blend(data, at, look.ramps.probability, p, OVERLAY_OPACITY * Math.min(1, 8 * p));
    if (look.overlay === "uncertainty") {
      const bits = entropy(p);
      blend(data, at, look.ramps.uncertainty, bits, OVERLAY_OPACITY * Math.min(1, 4 * bits));
    }
    if (look.band !== null && look.overlay === "none" && p >= 0.05 && p <= 0.95) mix(data, at, look.band, 0.35);
  }
}

// Bits of doubt about a label of probability p: 0 where it is sure, 1 where it may as well be either.
function entropy(p) {
  if (p <= 0 || p >= 1) return 0;
  return -(p * Math.log2(p) + (1 - p) * Math.log2(1 - p));
}

function blend(data, at, ramp, share, opacity) {
  mix(data, at, ramp[Math.min(ramp.length - 1, Math.floor(share * ramp.length))], opacity);
}

function mix(data, at, colour, opacity) {
  for (let c = 0; c < 3; c++) data[at + c] += opacity * (colour[c] - data[at + c]);
}
