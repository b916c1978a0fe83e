import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * Closes the connections on which nothing has come when the app stops. Node closes those that are idle after a request, and would
 * wait for the others until the time of a request is over.
 */
export function closeSilentConnections(app: FastifyInstance): void {
  const open = new Set<Socket>();
  app.server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  app.addHook('preClose', (done) => {
    for (const socket of open) if (socket.bytesRead === 0) socket.destroy();
    done();
  });
}
