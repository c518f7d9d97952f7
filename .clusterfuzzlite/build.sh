#!/bin/bash -eu
# Builds what OSS-Fuzz and ClusterFuzzLite run: for each target its program, its seeds, its words and its options.
# They set OUT, SRC and SANITIZER; so does `.clusterfuzzlite/check`, in a directory of its own.

cd "$SRC/uet"
programs=$(fuzz/build)
for seeds in corpora/*/; do
    target=$(basename "$seeds")
    cp "$programs/$target" "$OUT/"
    (cd "$seeds" && find . -type f | sort | xargs python3 -m zipfile -c "$OUT/${target}_seed_corpus.zip")
    cp "$(fuzz/run dictionary "$target")" "$OUT/$target.dict"
    printf '[libfuzzer]\nmax_len = %d\n' "$(fuzz/run longest "$target")" >"$OUT/$target.options"
done
