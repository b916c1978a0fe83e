let isReading = false;

/**
 * Reads the whole ledger for one page at a time in this process, which also serves payments. `busy`: another page is doing so.
 */
export async function readOneAtATime<T>(read: () => Promise<T>): Promise<T | 'busy'> {
  const begun = beginReading();
  if (!begun) return 'busy';
  try {
    return await read();
  } finally {
    begun.end();
  }
}

/** The same for work that continues after its answer has begun. Undefined if another page is reading. */
export function beginReading(): { readonly end: () => void } | undefined {
  if (isReading) return undefined;
  isReading = true;
  return {
    end: () => {
      isReading = false;
    },
  };
}
