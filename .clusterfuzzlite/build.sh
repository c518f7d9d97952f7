#!/bin/bash -eu
# Builds the files that OSS-Fuzz and ClusterFuzzLite run: a program, a seed corpus, a dictionary and options per target.
# These services set OUT, SRC and SANITIZER. `.clusterfuzzlite/check` sets them to a temporary folder.

cd "$SRC/uet"
programs=$(fuzz/build)
for seeds in corpora/*_seed_corpus.zip; do
    target=$(basename "$seeds" _seed_corpus.zip)
    cp "$programs/$target" "$OUT/"
    # The committed file holds the seeds only; the services also get the regressions.
    inputs=$(mktemp -d)
    fuzz/corpus unpack "$target" "$inputs"
    fuzz/corpus pack "$OUT/${target}_seed_corpus.zip" "$inputs"
    rm -r "$inputs"
    cp "$(fuzz/run dictionary "$target")" "$OUT/$target.dict"
    printf '[libfuzzer]\nmax_len = %d\n' "$(fuzz/run longest "$target")" >"$OUT/$target.options"
done
