/** The formats in which books are exported. */
export const bookFormats = ['csv', 'parquet', 'beancount', 'hledger', 'summary', 'summary-page'] as const;
export type BookFormat = (typeof bookFormats)[number];

/** The formats that accounting programs import: in their currency and chart of accounts, so no close pins them. */
export const importFormats = ['datev', 'xero', 'quickbooks'] as const;
export type ImportFormat = (typeof importFormats)[number];

export function isImportFormat(text: string): text is ImportFormat {
  return (importFormats as readonly string[]).includes(text);
}

/**
 * The edition of the formats: raised whenever the bytes of one of them change for the same ledger, so that a period that was closed
 * under another edition is not taken for one that was changed.
 */
export const formatsEdition = 1;

export function isBookFormat(text: string): text is BookFormat {
  return (bookFormats as readonly string[]).includes(text);
}

/** How `tollbook aging` prints. */
export const agingFormats = ['text', 'csv', 'json'] as const;
