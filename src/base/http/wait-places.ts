import type { LimitsConfig } from '../config/plain-tables.ts';
import { createPlaces } from '../runtime/places.ts';
import { clientOf } from '../values/client-address.ts';

type WaitLimits = Pick<LimitsConfig, 'maxWaitingRequests' | 'maxWaitingRequestsPerClient'>;

/** Bounds how many requests wait for a change at the same time, in all and of one client address. */
export interface WaitPlaces {
  /** Takes a place, and returns how to give it back; undefined if none is free. */
  take(clientAddress: string): (() => void) | undefined;
}

export function createWaitPlaces(limits: () => WaitLimits): WaitPlaces {
  const places = createPlaces();
  return {
    take(clientAddress) {
      const { maxWaitingRequests, maxWaitingRequestsPerClient } = limits();
      return places.take([
        ['all', maxWaitingRequests],
        [clientOf(clientAddress), maxWaitingRequestsPerClient],
      ]);
    },
  };
}
