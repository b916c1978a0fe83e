/** The formats of an aging. */
export const agingFormats = ['text', 'csv', 'json'] as const;
export type AgingFormat = (typeof agingFormats)[number];

export function isAgingFormat(text: string): text is AgingFormat {
  return (agingFormats as readonly string[]).includes(text);
}
