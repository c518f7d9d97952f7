# A small image that holds only the program `uet`: `docker build --tag uet .`, then `docker run --rm uet run`.
# It tests devices that it reaches over a network. It has no shell, so `exec:` devices need another image.
FROM rust:1.95.0-alpine AS build
RUN apk add --no-cache musl-dev
WORKDIR /src
COPY . .
RUN CARGO_PROFILE_RELEASE_STRIP=symbols cargo build --locked --release -p uet-cli
RUN mkdir -p /empty/work

FROM scratch
COPY --from=build /src/target/release/uet /usr/bin/uet
COPY LICENSE-APACHE LICENSE-MIT /usr/share/doc/uet/
# Nobody, who writes reports to /work. WORKDIR would make a folder of root.
COPY --from=build --chown=65534:65534 /empty/ /
USER 65534:65534
WORKDIR /work
ENTRYPOINT ["/usr/bin/uet"]
CMD ["--help"]
