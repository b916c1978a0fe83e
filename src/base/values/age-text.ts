/** A duration for a person, in the largest unit that has two of it: `90 s`, `3 days`. */
export function ageText(secs: number): string {
  if (secs < 120) return `${Math.round(secs)} s`;
  if (secs < 7_200) return `${Math.round(secs / 60)} min`;
  return secs < 172_800 ? `${Math.round(secs / 3_600)} h` : `${Math.round(secs / 86_400)} days`;
}
