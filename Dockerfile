# Not built in this project's CI, which has no container engine: test/deploy/compose.rig.ts runs the commands on the files that the
# images would have. `docker build .` makes the gateway, the last stage; `--target devnet` has a local chain and an example runner too.
FROM node:24.21.0-slim@sha256:2fe369e969550cde8e867afc3fe370b260140cab4a23d467074295b42163d553 AS base
WORKDIR /app
ENV NODE_ENV=production
COPY package.json package-lock.json .npmrc ./
COPY scripts ./scripts

# for trials: never expose it
FROM base AS devnet
RUN npm ci --include=dev --include=optional && npm cache clean --force
# the chain's state
RUN install -d -o node -g node /var/lib/tollbook
COPY src ./src
COPY migrations ./migrations
COPY examples ./examples
USER node
STOPSIGNAL SIGTERM
ENTRYPOINT ["node", "src/app/cli/tollbook.ts"]
CMD ["devnet", "--dir", "/var/lib/tollbook"]

FROM base AS gateway
# the image brings its own Node, and production needs no devnet
RUN npm ci --omit=dev --omit=optional && npm cache clean --force
# the service `secrets` of docker-compose.yml writes there
RUN install -d -o node -g node /secrets/database /secrets/migrate /secrets/gateway /secrets/runner
COPY src ./src
COPY migrations ./migrations
# what `tollbook init` writes from
COPY deploy/create-database.sql ./deploy/
COPY deploy/systemd ./deploy/systemd
USER node
STOPSIGNAL SIGTERM
EXPOSE 8402
ENTRYPOINT ["node", "src/app/cli/tollbook.ts"]
CMD ["--help"]
