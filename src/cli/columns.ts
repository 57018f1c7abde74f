/** Tables for terminals: columns as wide as their widest cell. */

/** Longer cells break the alignment instead of pushing every other row off the screen. */
const WIDTH_MAX = 48;

/** One line per row, two spaces between columns, nothing after the last one. */
export function alignColumns(rows: readonly (readonly string[])[], indent = ""): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      if (cell.length <= WIDTH_MAX) widths[column] = Math.max(widths[column] ?? 0, cell.length);
    }
  }
  return rows.map((row) => {
    const cells = row.map((cell, column) => cell.padEnd(widths[column] ?? 0));
    return `${indent}${cells.join("  ")}`.trimEnd();
  });
}
