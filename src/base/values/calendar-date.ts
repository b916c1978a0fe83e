/** Whether a text `YYYY-MM-DD` is a day of the calendar. */
export function isRealDay(text: string): boolean {
  const time = Date.parse(`${text}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(text);
}
