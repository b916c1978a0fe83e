/** Remembers since when each part has been in its state, by the part's name. */
export interface Since {
  /** RFC 3339: when this state of the part was first told. */
  of(name: string, ok: boolean): string;
}

export function createSince(nowMs: () => number = Date.now): Since {
  const states = new Map<string, { readonly ok: boolean; readonly at: string }>();
  return {
    of(name, ok) {
      const known = states.get(name);
      if (known?.ok === ok) return known.at;
      const at = new Date(nowMs()).toISOString();
      states.set(name, { ok, at });
      return at;
    },
  };
}
