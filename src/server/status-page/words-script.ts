/** Script of the status page: numbers and texts for people, and making elements. */
export const WORDS_SCRIPT: string = String.raw`
const byId = (id) => document.getElementById(id);

// What a caller sent may hold characters that reorder, hide or break lines: they are spelled out.
const visible = (text) => String(text).replace(/[\p{C}\p{Zl}\p{Zp}]/gu,
  (sign) => "\\u{" + sign.codePointAt(0).toString(16) + "}");

const element = (tag, className, ...inside) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...inside);
  return made;
};

// Changes only what differs, so that a selection of text survives the next answer.
const write = (node, text) => {
  if (node.textContent !== text) node.textContent = text;
};

const digits = [0, 1, 2].map((most) => new Intl.NumberFormat("en", {
  maximumFractionDigits: most,
}));
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

const number = (value) => {
  if (value === null || value === undefined) return "\u2013";
  const size = Math.abs(value);
  if (size >= 100000) return compact.format(value);
  return digits[size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2].format(value);
};

const perSecond = (value) => {
  if (value >= 1 || value === 0) return number(value) + "/s";
  if (value * 60 >= 1) return number(value * 60) + "/min";
  if (value * 3600 >= 1) return number(value * 3600) + "/h";
  return number(value * 86400) + "/d";
};

const percent = (part) => digits[part < 0.1 ? 1 : 0].format(part * 100) + "%";

const span = (seconds) => {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 90) return whole + " s";
  if (whole < 5400) return Math.round(whole / 60) + " min";
  if (whole < 172800) return Math.round(whole / 3600) + " h";
  return Math.round(whole / 86400) + " d";
};

const since = (instant) => {
  const at = Date.parse(instant);
  return Number.isNaN(at) ? "" : span((Date.now() - at) / 1000) + " ago";
};
`;
