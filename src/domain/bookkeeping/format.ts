/** The formats in which books are exported. */
export const bookFormats = ['csv', 'parquet', 'beancount', 'hledger'] as const;
export type BookFormat = (typeof bookFormats)[number];

export function isBookFormat(text: string): text is BookFormat {
  return (bookFormats as readonly string[]).includes(text);
}
