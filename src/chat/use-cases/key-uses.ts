import type pg from 'pg';
import { recordKeyUses } from '../../accounts/store/api-keys.ts';

/** The keys that requests have presented, whatever became of the requests; written together. */
export interface KeyUses {
  note(keyId: number): void;
  /** Records when the noted keys were last used, to a minute. */
  write(): Promise<void>;
}

export function createKeyUses(pool: pg.Pool): KeyUses {
  let noted = new Set<number>();
  return {
    note: (keyId) => void noted.add(keyId),
    async write() {
      if (noted.size === 0) return;
      const used = noted;
      noted = new Set();
      try {
        await recordKeyUses(pool, [...used]);
      } catch (error) {
        for (const keyId of used) noted.add(keyId);
        throw error;
      }
    },
  };
}
