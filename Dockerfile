# Not run in this project's CI, which has no Docker.
FROM node:24-slim
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY scripts ./scripts
# the image brings its own Node, and production needs no devnet
RUN npm ci --omit=dev --omit=optional && npm cache clean --force
COPY src ./src
COPY migrations ./migrations
USER node
ENV NODE_ENV=production
STOPSIGNAL SIGTERM
EXPOSE 8402
ENTRYPOINT ["node", "src/cli/tollbook.ts"]
CMD ["--help"]
