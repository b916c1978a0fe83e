import type { FastifyInstance, FastifyRequest } from 'fastify';

/** A value that this server keeps with a request. A WeakMap would cost each request more, also in the garbage collector. */
export interface RequestField<T> {
  /** The requests of this app are made with room for it. Those of another app get it when it is set. */
  addTo(app: FastifyInstance): void;
  of(request: FastifyRequest): T | undefined;
  set(request: FastifyRequest, value: T): void;
}

/** @param name for a debugger */
export function createRequestField<T>(name: string): RequestField<T> {
  const key = Symbol(name);
  const holder = (request: FastifyRequest) => request as FastifyRequest & { [key]?: T };
  return {
    addTo: (app) => void app.decorateRequest(key, undefined),
    of: (request) => holder(request)[key],
    set: (request, value) => void (holder(request)[key] = value),
  };
}
