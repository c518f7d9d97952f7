/* A parser of Ultra Ethernet Transport under test: implement `uet_parse_under_test`, and see docs/fuzzing.md.
 *
 * Made by `cargo run -p uet-under-test --example header` from the tables of uet-wire. */
#ifndef UET_UNDER_TEST_H
#define UET_UNDER_TEST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum uet_field {
