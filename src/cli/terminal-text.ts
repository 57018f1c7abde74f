/** Text for terminals: how wide it is, cutting and padding it, colours, and nothing that acts. */

/** SGR codes; every one is undone by a reset. */
const STYLES = {
  strong: "1",
  soft: "2",
  good: "32",
  warn: "33",
  bad: "31",
  admitted: "36",
  denied: "33",
} as const;

export type Style = keyof typeof STYLES;

/** A piece of a line, with a style or without. */
export type Span = readonly [text: string, style?: Style | undefined];

export type Line = readonly Span[];

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/**
 * The text with what a terminal would act upon, or hide, spelled out: control and formatting
 * characters. Whatever a caller sent as a key can be printed after this.
 */
export function visible(text: string): string {
  return text.replace(
    /[\p{C}\p{Zl}\p{Zp}]/gu,
    (sign) => `\\u{${sign.codePointAt(0)?.toString(16)}}`,
  );
}

/** Columns that a visible text takes. */
export function widthOf(text: string): number {
  let width = 0;
  for (const sign of text) width += signWidth(sign);
  return width;
}

/** As much of a visible text as fits, with a mark where something is missing. */
export function cut(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text;
  let kept = "";
  let width = 0;
  for (const sign of text) {
    width += signWidth(sign);
    if (width > columns - 1) break;
    kept += sign;
  }
  return columns > 0 ? `${kept}~` : "";
}

/** Cut or filled up to exactly so many columns. */
export function fitted(text: string, columns: number, side: "left" | "right" = "left"): string {
  const short = cut(text, columns);
  const fill = " ".repeat(Math.max(0, columns - widthOf(short)));
  return side === "left" ? short + fill : fill + short;
}

/** A line as it is printed: no wider than the terminal, with colours if there may be any. */
export function painted(line: Line, columns: number, hasColours: boolean): string {
  let left = columns;
  let text = "";
  for (const [piece, style] of line) {
    const short = cut(piece, left);
    left -= widthOf(short);
    text += hasColours && style !== undefined ? `\x1b[${STYLES[style]}m${short}\x1b[0m` : short;
  }
  return hasColours ? text : text.trimEnd();
}

function signWidth(sign: string): number {
  if (/\p{M}/u.test(sign)) return 0;
  return WIDE.test(sign) ? 2 : 1;
}
