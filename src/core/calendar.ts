/** Units of time as people state limits in them: a month is 30 days, a year 365. */

const DAY = 86_400;

/** Length of each unit in seconds, the shortest first. */
export const UNIT_SECONDS: Readonly<Record<Unit, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: DAY,
  week: 7 * DAY,
  month: 30 * DAY,
  year: 365 * DAY,
};

export type Unit = "second" | "minute" | "hour" | "day" | "week" | "month" | "year";
