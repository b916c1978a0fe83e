import type { LimitsConfig } from '../config/limits.ts';
import { clientOf } from '../values/client-address.ts';

type WaitLimits = Pick<LimitsConfig, 'maxWaitingRequests' | 'maxWaitingRequestsPerClient'>;

/** Bounds how many requests wait for a change at the same time, in all and of one client address. */
export interface WaitPlaces {
  /** Takes a place, and returns how to give it back; undefined where none is free. */
  take(clientAddress: string): (() => void) | undefined;
}

export function createWaitPlaces(limits: () => WaitLimits): WaitPlaces {
  const places = new Map<string, number>();
  let taken = 0;
  return {
    take(clientAddress) {
      const client = clientOf(clientAddress);
      const ofClient = places.get(client) ?? 0;
      const { maxWaitingRequests, maxWaitingRequestsPerClient } = limits();
      if (taken >= maxWaitingRequests || ofClient >= maxWaitingRequestsPerClient) return undefined;
      taken++;
      places.set(client, ofClient + 1);
      let isTaken = true;
      return () => {
        if (!isTaken) return;
        isTaken = false;
        taken--;
        const left = (places.get(client) ?? 1) - 1;
        if (left > 0) places.set(client, left);
        else places.delete(client);
      };
    },
  };
}
