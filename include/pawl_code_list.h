/* pawl_code_list.h - how the lists of pawl_code.h are read. Part of that header; nothing here is for
 * users.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A list is read once for each use: `has` is then a macro that picks, by the word in front, one line
 * of that use. Every line is given two zeros more, so that `...` is never empty. */
#ifndef PAWL_CODE_LIST_H
#define PAWL_CODE_LIST_H

/* ---- How a list is read: one macro for each use, one line for each word -- */

#define PAWL_NO_ROW_ { NULL, PAWL_VAR_INT64, 0, 0, 0, 0, NULL, false, false }
#define PAWL_NOTHING_(...)

#define PAWL_PART_MEMBER_(kind, ...) PAWL_DECL_##kind(__VA_ARGS__, 0, 0)
#define PAWL_PART_ROW_(kind, ...) PAWL_ROW_##kind(pawl_self_, plain_, __VA_ARGS__, 0, 0)

#define PAWL_MEMBER_(what, ...) PAWL_MEMBER_##what(__VA_ARGS__, 0, 0)
#define PAWL_MEMBER_var(kind, ...) PAWL_DECL_##kind(__VA_ARGS__)
#define PAWL_MEMBER_input(kind, ...) PAWL_DECL_##kind(__VA_ARGS__)
#define PAWL_MEMBER_required(kind, ...) PAWL_DECL_##kind(__VA_ARGS__)
#define PAWL_MEMBER_result PAWL_NOTHING_
#define PAWL_MEMBER_timer PAWL_NOTHING_
#define PAWL_MEMBER_signal PAWL_NOTHING_
#define PAWL_MEMBER_call PAWL_NOTHING_
#define PAWL_MEMBER_external PAWL_NOTHING_
#define PAWL_MEMBER_buffered PAWL_NOTHING_
#define PAWL_MEMBER_child PAWL_NOTHING_
#define PAWL_MEMBER_await PAWL_NOTHING_
#define PAWL_MEMBER_version PAWL_NOTHING_
#define PAWL_MEMBER_migrate PAWL_NOTHING_
#define PAWL_MEMBER_renamed PAWL_NOTHING_

#define PAWL_ROW_(what, ...) PAWL_VARS_##what(__VA_ARGS__, 0, 0)
#define PAWL_VARS_var(kind, ...) PAWL_ROW_##kind(pawl_self_, plain_, __VA_ARGS__)
#define PAWL_VARS_input(kind, ...) PAWL_ROW_##kind(pawl_self_, input_, __VA_ARGS__)
#define PAWL_VARS_required(kind, ...) PAWL_ROW_##kind(pawl_self_, required_, __VA_ARGS__)
#define PAWL_VARS_result PAWL_NOTHING_
#define PAWL_VARS_timer PAWL_NOTHING_
#define PAWL_VARS_signal PAWL_NOTHING_
#define PAWL_VARS_call PAWL_NOTHING_
#define PAWL_VARS_external PAWL_NOTHING_
#define PAWL_VARS_buffered PAWL_NOTHING_
#define PAWL_VARS_child PAWL_NOTHING_
#define PAWL_VARS_await PAWL_NOTHING_
#define PAWL_VARS_version PAWL_NOTHING_
#define PAWL_VARS_migrate PAWL_NOTHING_
#define PAWL_VARS_renamed PAWL_NOTHING_

#define PAWL_FIRST_(what, ...) PAWL_FIRST_##what(__VA_ARGS__, 0, 0)
#define PAWL_FIRST_var(kind, ...) PAWL_INIT_##kind(__VA_ARGS__)
#define PAWL_FIRST_input(kind, ...) PAWL_INIT_##kind(__VA_ARGS__)
#define PAWL_FIRST_required(kind, ...) PAWL_INIT_##kind(__VA_ARGS__)
#define PAWL_FIRST_result PAWL_NOTHING_
#define PAWL_FIRST_timer PAWL_NOTHING_
#define PAWL_FIRST_signal PAWL_NOTHING_
#define PAWL_FIRST_call PAWL_NOTHING_
#define PAWL_FIRST_external PAWL_NOTHING_
#define PAWL_FIRST_buffered PAWL_NOTHING_
#define PAWL_FIRST_child PAWL_NOTHING_
#define PAWL_FIRST_await PAWL_NOTHING_
#define PAWL_FIRST_version PAWL_NOTHING_
#define PAWL_FIRST_migrate PAWL_NOTHING_
#define PAWL_FIRST_renamed PAWL_NOTHING_

#define PAWL_GOT_(what, ...) PAWL_GOT_##what(__VA_ARGS__, 0, 0)
#define PAWL_GOT_signal(name, kind, ...) PAWL_DECL_##kind(name, __VA_ARGS__)
#define PAWL_GOT_call(name, kind, ...) PAWL_DECL_##kind(name, __VA_ARGS__)
#define PAWL_GOT_external(name, kind, ...) PAWL_DECL_##kind(name, __VA_ARGS__)
#define PAWL_GOT_var PAWL_NOTHING_
#define PAWL_GOT_input PAWL_NOTHING_
#define PAWL_GOT_required PAWL_NOTHING_
#define PAWL_GOT_result PAWL_NOTHING_
#define PAWL_GOT_timer PAWL_NOTHING_
#define PAWL_GOT_buffered PAWL_NOTHING_
#define PAWL_GOT_child(name, kind, ...) PAWL_DECL_##kind(name, __VA_ARGS__)
#define PAWL_GOT_await PAWL_NOTHING_
#define PAWL_GOT_version PAWL_NOTHING_
#define PAWL_GOT_migrate PAWL_NOTHING_
#define PAWL_GOT_renamed PAWL_NOTHING_

#define PAWL_GOT_ROW_(what, ...) PAWL_GOT_ROW_##what(__VA_ARGS__, 0, 0)
#define PAWL_GOT_ROW_signal(name, kind, ...) PAWL_ROW_##kind(pawl_got_, plain_, name, __VA_ARGS__)
#define PAWL_GOT_ROW_call(name, kind, ...) PAWL_ROW_##kind(pawl_got_, plain_, name, __VA_ARGS__)
#define PAWL_GOT_ROW_external(name, kind, ...) PAWL_ROW_##kind(pawl_got_, plain_, name, __VA_ARGS__)
#define PAWL_GOT_ROW_var PAWL_NOTHING_
#define PAWL_GOT_ROW_input PAWL_NOTHING_
#define PAWL_GOT_ROW_required PAWL_NOTHING_
#define PAWL_GOT_ROW_result PAWL_NOTHING_
#define PAWL_GOT_ROW_timer PAWL_NOTHING_
#define PAWL_GOT_ROW_buffered PAWL_NOTHING_
#define PAWL_GOT_ROW_child(name, kind, ...) PAWL_ROW_##kind(pawl_got_, plain_, name, __VA_ARGS__)
#define PAWL_GOT_ROW_await PAWL_NOTHING_
#define PAWL_GOT_ROW_version PAWL_NOTHING_
#define PAWL_GOT_ROW_migrate PAWL_NOTHING_
#define PAWL_GOT_ROW_renamed PAWL_NOTHING_

#define PAWL_RESULT_(what, ...) PAWL_RESULT_##what(__VA_ARGS__, 0, 0)
#define PAWL_RESULT_result(kind, ...) PAWL_DECL_##kind(__VA_ARGS__)
#define PAWL_RESULT_ROW_(what, ...) PAWL_RESULT_ROW_##what(__VA_ARGS__, 0, 0)
#define PAWL_RESULT_ROW_result(kind, ...) PAWL_ROW_##kind(pawl_result_, plain_, __VA_ARGS__)
#define PAWL_RESULT_var PAWL_NOTHING_
#define PAWL_RESULT_input PAWL_NOTHING_
#define PAWL_RESULT_required PAWL_NOTHING_
#define PAWL_RESULT_timer PAWL_NOTHING_
#define PAWL_RESULT_signal PAWL_NOTHING_
#define PAWL_RESULT_call PAWL_NOTHING_
#define PAWL_RESULT_external PAWL_NOTHING_
#define PAWL_RESULT_buffered PAWL_NOTHING_
#define PAWL_RESULT_child PAWL_NOTHING_
#define PAWL_RESULT_await PAWL_NOTHING_
#define PAWL_RESULT_version PAWL_NOTHING_
#define PAWL_RESULT_migrate PAWL_NOTHING_
#define PAWL_RESULT_renamed PAWL_NOTHING_
#define PAWL_RESULT_ROW_var PAWL_NOTHING_
#define PAWL_RESULT_ROW_input PAWL_NOTHING_
#define PAWL_RESULT_ROW_required PAWL_NOTHING_
#define PAWL_RESULT_ROW_timer PAWL_NOTHING_
#define PAWL_RESULT_ROW_signal PAWL_NOTHING_
#define PAWL_RESULT_ROW_call PAWL_NOTHING_
#define PAWL_RESULT_ROW_external PAWL_NOTHING_
#define PAWL_RESULT_ROW_buffered PAWL_NOTHING_
#define PAWL_RESULT_ROW_child PAWL_NOTHING_
#define PAWL_RESULT_ROW_await PAWL_NOTHING_
#define PAWL_RESULT_ROW_version PAWL_NOTHING_
#define PAWL_RESULT_ROW_migrate PAWL_NOTHING_
#define PAWL_RESULT_ROW_renamed PAWL_NOTHING_

#define PAWL_TYPE_(what, ...) PAWL_TYPE_##what(__VA_ARGS__, 0, 0)
#define PAWL_TYPE_version(number, ...) .version = (number),
#define PAWL_TYPE_migrate(function, ...) .migrate = (function),
#define PAWL_TYPE_var PAWL_NOTHING_
#define PAWL_TYPE_input PAWL_NOTHING_
#define PAWL_TYPE_required PAWL_NOTHING_
#define PAWL_TYPE_result PAWL_NOTHING_
#define PAWL_TYPE_timer PAWL_NOTHING_
#define PAWL_TYPE_signal PAWL_NOTHING_
#define PAWL_TYPE_call PAWL_NOTHING_
#define PAWL_TYPE_external PAWL_NOTHING_
#define PAWL_TYPE_buffered PAWL_NOTHING_
#define PAWL_TYPE_child PAWL_NOTHING_
#define PAWL_TYPE_await PAWL_NOTHING_
#define PAWL_TYPE_renamed PAWL_NOTHING_

/* Old names of variables, and what they are called now. */
#define PAWL_RENAMED_(what, ...) PAWL_RENAMED_##what(__VA_ARGS__, 0, 0)
#define PAWL_RENAMED_renamed(from, to, ...) { #from, #to },
#define PAWL_RENAMED_var PAWL_NOTHING_
#define PAWL_RENAMED_input PAWL_NOTHING_
#define PAWL_RENAMED_required PAWL_NOTHING_
#define PAWL_RENAMED_result PAWL_NOTHING_
#define PAWL_RENAMED_timer PAWL_NOTHING_
#define PAWL_RENAMED_signal PAWL_NOTHING_
#define PAWL_RENAMED_call PAWL_NOTHING_
#define PAWL_RENAMED_external PAWL_NOTHING_
#define PAWL_RENAMED_child PAWL_NOTHING_
#define PAWL_RENAMED_buffered PAWL_NOTHING_
#define PAWL_RENAMED_await PAWL_NOTHING_
#define PAWL_RENAMED_version PAWL_NOTHING_
#define PAWL_RENAMED_migrate PAWL_NOTHING_

/* Names as texts, and as enumerators. */
#define PAWL_TIMER_(what, ...) PAWL_TIMER_##what(__VA_ARGS__, 0, 0)
#define PAWL_SIGNAL_(what, ...) PAWL_SIGNAL_##what(__VA_ARGS__, 0, 0)
#define PAWL_CALL_(what, ...) PAWL_CALL_##what(__VA_ARGS__, 0, 0)
#define PAWL_EXTERNAL_(what, ...) PAWL_EXTERNAL_##what(__VA_ARGS__, 0, 0)
#define PAWL_AWAIT_(what, ...) PAWL_AWAIT_##what(__VA_ARGS__, 0, 0)
#define PAWL_NAME_TIMER_(what, ...) PAWL_NAME_TIMER_##what(__VA_ARGS__, 0, 0)
#define PAWL_NAME_SIGNAL_(what, ...) PAWL_NAME_SIGNAL_##what(__VA_ARGS__, 0, 0)
#define PAWL_NAME_CALL_(what, ...) PAWL_NAME_CALL_##what(__VA_ARGS__, 0, 0)
#define PAWL_NAME_EXTERNAL_(what, ...) PAWL_NAME_EXTERNAL_##what(__VA_ARGS__, 0, 0)
#define PAWL_NAME_AWAIT_(what, ...) PAWL_NAME_AWAIT_##what(__VA_ARGS__, 0, 0)
#define PAWL_TIMER_var PAWL_NOTHING_
#define PAWL_NAME_TIMER_var PAWL_NOTHING_
#define PAWL_TIMER_input PAWL_NOTHING_
#define PAWL_TIMER_required PAWL_NOTHING_
#define PAWL_NAME_TIMER_input PAWL_NOTHING_
#define PAWL_NAME_TIMER_required PAWL_NOTHING_
#define PAWL_TIMER_result PAWL_NOTHING_
#define PAWL_NAME_TIMER_result PAWL_NOTHING_
#define PAWL_TIMER_timer(name, ...) #name,
#define PAWL_NAME_TIMER_timer(name, ...) pawl_timer_##name##_,
#define PAWL_TIMER_signal PAWL_NOTHING_
#define PAWL_NAME_TIMER_signal PAWL_NOTHING_
#define PAWL_TIMER_call PAWL_NOTHING_
#define PAWL_NAME_TIMER_call PAWL_NOTHING_
#define PAWL_TIMER_external PAWL_NOTHING_
#define PAWL_NAME_TIMER_external PAWL_NOTHING_
#define PAWL_TIMER_buffered PAWL_NOTHING_
#define PAWL_TIMER_child PAWL_NOTHING_
#define PAWL_TIMER_await PAWL_NOTHING_
#define PAWL_NAME_TIMER_buffered PAWL_NOTHING_
#define PAWL_NAME_TIMER_child PAWL_NOTHING_
#define PAWL_NAME_TIMER_await PAWL_NOTHING_
#define PAWL_TIMER_version PAWL_NOTHING_
#define PAWL_NAME_TIMER_version PAWL_NOTHING_
#define PAWL_TIMER_migrate PAWL_NOTHING_
#define PAWL_TIMER_renamed PAWL_NOTHING_
#define PAWL_NAME_TIMER_migrate PAWL_NOTHING_
#define PAWL_NAME_TIMER_renamed PAWL_NOTHING_
#define PAWL_SIGNAL_var PAWL_NOTHING_
#define PAWL_NAME_SIGNAL_var PAWL_NOTHING_
#define PAWL_SIGNAL_input PAWL_NOTHING_
#define PAWL_SIGNAL_required PAWL_NOTHING_
#define PAWL_NAME_SIGNAL_input PAWL_NOTHING_
#define PAWL_NAME_SIGNAL_required PAWL_NOTHING_
#define PAWL_SIGNAL_result PAWL_NOTHING_
#define PAWL_NAME_SIGNAL_result PAWL_NOTHING_
#define PAWL_SIGNAL_timer PAWL_NOTHING_
#define PAWL_NAME_SIGNAL_timer PAWL_NOTHING_
#define PAWL_SIGNAL_signal(name, ...) #name,
#define PAWL_NAME_SIGNAL_signal(name, ...) pawl_signal_##name##_,
#define PAWL_SIGNAL_call PAWL_NOTHING_
#define PAWL_NAME_SIGNAL_call PAWL_NOTHING_
#define PAWL_SIGNAL_external PAWL_NOTHING_
#define PAWL_NAME_SIGNAL_external PAWL_NOTHING_
#define PAWL_SIGNAL_buffered PAWL_NOTHING_
#define PAWL_SIGNAL_child PAWL_NOTHING_
#define PAWL_SIGNAL_await PAWL_NOTHING_
#define PAWL_NAME_SIGNAL_buffered PAWL_NOTHING_
#define PAWL_NAME_SIGNAL_child PAWL_NOTHING_
#define PAWL_NAME_SIGNAL_await PAWL_NOTHING_
#define PAWL_SIGNAL_version PAWL_NOTHING_
#define PAWL_NAME_SIGNAL_version PAWL_NOTHING_
#define PAWL_SIGNAL_migrate PAWL_NOTHING_
#define PAWL_SIGNAL_renamed PAWL_NOTHING_
#define PAWL_NAME_SIGNAL_migrate PAWL_NOTHING_
#define PAWL_NAME_SIGNAL_renamed PAWL_NOTHING_
#define PAWL_CALL_var PAWL_NOTHING_
#define PAWL_NAME_CALL_var PAWL_NOTHING_
#define PAWL_CALL_input PAWL_NOTHING_
#define PAWL_CALL_required PAWL_NOTHING_
#define PAWL_NAME_CALL_input PAWL_NOTHING_
#define PAWL_NAME_CALL_required PAWL_NOTHING_
#define PAWL_CALL_result PAWL_NOTHING_
#define PAWL_NAME_CALL_result PAWL_NOTHING_
#define PAWL_CALL_timer PAWL_NOTHING_
#define PAWL_NAME_CALL_timer PAWL_NOTHING_
#define PAWL_CALL_signal PAWL_NOTHING_
#define PAWL_NAME_CALL_signal PAWL_NOTHING_
#define PAWL_CALL_call(name, ...) #name,
#define PAWL_NAME_CALL_call(name, ...) pawl_call_##name##_,
#define PAWL_CALL_external PAWL_NOTHING_
#define PAWL_NAME_CALL_external PAWL_NOTHING_
#define PAWL_CALL_buffered PAWL_NOTHING_
#define PAWL_CALL_child PAWL_NOTHING_
#define PAWL_CALL_await PAWL_NOTHING_
#define PAWL_NAME_CALL_buffered PAWL_NOTHING_
#define PAWL_NAME_CALL_child PAWL_NOTHING_
#define PAWL_NAME_CALL_await PAWL_NOTHING_
#define PAWL_CALL_version PAWL_NOTHING_
#define PAWL_NAME_CALL_version PAWL_NOTHING_
#define PAWL_CALL_migrate PAWL_NOTHING_
#define PAWL_CALL_renamed PAWL_NOTHING_
#define PAWL_NAME_CALL_migrate PAWL_NOTHING_
#define PAWL_NAME_CALL_renamed PAWL_NOTHING_
#define PAWL_EXTERNAL_var PAWL_NOTHING_
#define PAWL_NAME_EXTERNAL_var PAWL_NOTHING_
#define PAWL_EXTERNAL_input PAWL_NOTHING_
#define PAWL_EXTERNAL_required PAWL_NOTHING_
#define PAWL_NAME_EXTERNAL_input PAWL_NOTHING_
#define PAWL_NAME_EXTERNAL_required PAWL_NOTHING_
#define PAWL_EXTERNAL_result PAWL_NOTHING_
#define PAWL_NAME_EXTERNAL_result PAWL_NOTHING_
#define PAWL_EXTERNAL_timer PAWL_NOTHING_
#define PAWL_NAME_EXTERNAL_timer PAWL_NOTHING_
#define PAWL_EXTERNAL_signal PAWL_NOTHING_
#define PAWL_NAME_EXTERNAL_signal PAWL_NOTHING_
#define PAWL_EXTERNAL_call PAWL_NOTHING_
#define PAWL_NAME_EXTERNAL_call PAWL_NOTHING_
#define PAWL_EXTERNAL_external(name, ...) #name,
#define PAWL_NAME_EXTERNAL_external(name, ...) pawl_external_##name##_,
#define PAWL_EXTERNAL_buffered PAWL_NOTHING_
#define PAWL_EXTERNAL_child PAWL_NOTHING_
#define PAWL_EXTERNAL_await PAWL_NOTHING_
#define PAWL_NAME_EXTERNAL_buffered PAWL_NOTHING_
#define PAWL_NAME_EXTERNAL_child PAWL_NOTHING_
#define PAWL_NAME_EXTERNAL_await PAWL_NOTHING_
#define PAWL_EXTERNAL_version PAWL_NOTHING_
#define PAWL_NAME_EXTERNAL_version PAWL_NOTHING_
#define PAWL_EXTERNAL_migrate PAWL_NOTHING_
#define PAWL_EXTERNAL_renamed PAWL_NOTHING_
#define PAWL_NAME_EXTERNAL_migrate PAWL_NOTHING_
#define PAWL_NAME_EXTERNAL_renamed PAWL_NOTHING_
#define PAWL_AWAIT_var PAWL_NOTHING_
#define PAWL_NAME_AWAIT_var PAWL_NOTHING_
#define PAWL_AWAIT_input PAWL_NOTHING_
#define PAWL_AWAIT_required PAWL_NOTHING_
#define PAWL_NAME_AWAIT_input PAWL_NOTHING_
#define PAWL_NAME_AWAIT_required PAWL_NOTHING_
#define PAWL_AWAIT_result PAWL_NOTHING_
#define PAWL_NAME_AWAIT_result PAWL_NOTHING_
#define PAWL_AWAIT_timer PAWL_NOTHING_
#define PAWL_NAME_AWAIT_timer PAWL_NOTHING_
#define PAWL_AWAIT_signal PAWL_NOTHING_
#define PAWL_NAME_AWAIT_signal PAWL_NOTHING_
#define PAWL_AWAIT_call PAWL_NOTHING_
#define PAWL_NAME_AWAIT_call PAWL_NOTHING_
#define PAWL_AWAIT_external PAWL_NOTHING_
#define PAWL_NAME_AWAIT_external PAWL_NOTHING_
#define PAWL_AWAIT_buffered PAWL_NOTHING_
#define PAWL_AWAIT_child PAWL_NOTHING_
#define PAWL_AWAIT_await(name, ...) #name,
#define PAWL_NAME_AWAIT_buffered PAWL_NOTHING_
#define PAWL_NAME_AWAIT_child PAWL_NOTHING_
#define PAWL_NAME_AWAIT_await(name, ...) pawl_await_##name##_,
#define PAWL_AWAIT_version PAWL_NOTHING_
#define PAWL_NAME_AWAIT_version PAWL_NOTHING_
#define PAWL_AWAIT_migrate PAWL_NOTHING_
#define PAWL_AWAIT_renamed PAWL_NOTHING_
#define PAWL_NAME_AWAIT_migrate PAWL_NOTHING_
#define PAWL_NAME_AWAIT_renamed PAWL_NOTHING_

#define PAWL_CHILD_(what, ...) PAWL_CHILD_##what(__VA_ARGS__, 0, 0)
#define PAWL_BUFFERED_(what, ...) PAWL_BUFFERED_##what(__VA_ARGS__, 0, 0)
#define PAWL_NAME_CHILD_(what, ...) PAWL_NAME_CHILD_##what(__VA_ARGS__, 0, 0)
#define PAWL_CHILD_var PAWL_NOTHING_
#define PAWL_NAME_CHILD_var PAWL_NOTHING_
#define PAWL_BUFFERED_var PAWL_NOTHING_
#define PAWL_CHILD_input PAWL_NOTHING_
#define PAWL_CHILD_required PAWL_NOTHING_
#define PAWL_NAME_CHILD_input PAWL_NOTHING_
#define PAWL_NAME_CHILD_required PAWL_NOTHING_
#define PAWL_BUFFERED_input PAWL_NOTHING_
#define PAWL_BUFFERED_required PAWL_NOTHING_
#define PAWL_CHILD_result PAWL_NOTHING_
#define PAWL_NAME_CHILD_result PAWL_NOTHING_
#define PAWL_BUFFERED_result PAWL_NOTHING_
#define PAWL_CHILD_timer PAWL_NOTHING_
#define PAWL_NAME_CHILD_timer PAWL_NOTHING_
#define PAWL_BUFFERED_timer PAWL_NOTHING_
#define PAWL_CHILD_signal PAWL_NOTHING_
#define PAWL_NAME_CHILD_signal PAWL_NOTHING_
#define PAWL_BUFFERED_signal PAWL_NOTHING_
#define PAWL_CHILD_call PAWL_NOTHING_
#define PAWL_NAME_CHILD_call PAWL_NOTHING_
#define PAWL_BUFFERED_call PAWL_NOTHING_
#define PAWL_CHILD_external PAWL_NOTHING_
#define PAWL_NAME_CHILD_external PAWL_NOTHING_
#define PAWL_BUFFERED_external PAWL_NOTHING_
#define PAWL_CHILD_child(name, ...) #name,
#define PAWL_NAME_CHILD_child(name, ...) pawl_child_##name##_,
#define PAWL_BUFFERED_child PAWL_NOTHING_
#define PAWL_CHILD_buffered PAWL_NOTHING_
#define PAWL_NAME_CHILD_buffered PAWL_NOTHING_
#define PAWL_BUFFERED_buffered(name, ...) #name,
#define PAWL_CHILD_await PAWL_NOTHING_
#define PAWL_NAME_CHILD_await PAWL_NOTHING_
#define PAWL_BUFFERED_await PAWL_NOTHING_
#define PAWL_CHILD_version PAWL_NOTHING_
#define PAWL_NAME_CHILD_version PAWL_NOTHING_
#define PAWL_BUFFERED_version PAWL_NOTHING_
#define PAWL_CHILD_migrate PAWL_NOTHING_
#define PAWL_CHILD_renamed PAWL_NOTHING_
#define PAWL_NAME_CHILD_migrate PAWL_NOTHING_
#define PAWL_NAME_CHILD_renamed PAWL_NOTHING_
#define PAWL_BUFFERED_migrate PAWL_NOTHING_
#define PAWL_BUFFERED_renamed PAWL_NOTHING_

/* How a row is used: is it an input, is it required? */
#define PAWL_USE_plain_ false, false
#define PAWL_USE_input_ true, false
#define PAWL_USE_member_ false, true
#define PAWL_USE_required_ true, true

/* Kinds: a member of a struct, its row, its first value. 0 is no kind: nothing is carried. */
#define PAWL_DECL_0 PAWL_NOTHING_
#define PAWL_ROW_0 PAWL_NOTHING_
#define PAWL_DECL_required(kind, ...) PAWL_DECL_##kind(__VA_ARGS__)
#define PAWL_ROW_required(base, use, kind, ...) PAWL_ROW_##kind(base, member_, __VA_ARGS__)
#define PAWL_ONE_(base, use, name, type, kind) \
    { #name, PAWL_VAR_##kind, offsetof(base, name), sizeof(type), 0, 0, NULL, PAWL_USE_##use },
#define PAWL_MANY_(base, use, name, type, kind, max) \
    { #name, kind, offsetof(base, name), sizeof(type), max, offsetof(base, name##_count), NULL, PAWL_USE_##use },
#define PAWL_VALUE_(name, first, ...) .name = (first),
#define PAWL_DECL_int8_t(name, ...) int8_t name;
#define PAWL_ROW_int8_t(base, use, name, ...) PAWL_ONE_(base, use, name, int8_t, INT8)
#define PAWL_INIT_int8_t(...) PAWL_VALUE_(__VA_ARGS__)
#define PAWL_VAR_OF_int8_t PAWL_VAR_INT8
#define PAWL_DECL_int16_t(name, ...) int16_t name;
#define PAWL_ROW_int16_t(base, use, name, ...) PAWL_ONE_(base, use, name, int16_t, INT16)
#define PAWL_INIT_int16_t(...) PAWL_VALUE_(__VA_ARGS__)
#define PAWL_VAR_OF_int16_t PAWL_VAR_INT16
#define PAWL_DECL_int32_t(name, ...) int32_t name;
#define PAWL_ROW_int32_t(base, use, name, ...) PAWL_ONE_(base, use, name, int32_t, INT32)
#define PAWL_INIT_int32_t(...) PAWL_VALUE_(__VA_ARGS__)
#define PAWL_VAR_OF_int32_t PAWL_VAR_INT32
#define PAWL_DECL_int64_t(name, ...) int64_t name;
#define PAWL_ROW_int64_t(base, use, name, ...) PAWL_ONE_(base, use, name, int64_t, INT64)
#define PAWL_INIT_int64_t(...) PAWL_VALUE_(__VA_ARGS__)
#define PAWL_VAR_OF_int64_t PAWL_VAR_INT64
#define PAWL_DECL_uint8_t(name, ...) uint8_t name;
#define PAWL_ROW_uint8_t(base, use, name, ...) PAWL_ONE_(base, use, name, uint8_t, UINT8)
#define PAWL_INIT_uint8_t(...) PAWL_VALUE_(__VA_ARGS__)
#define PAWL_VAR_OF_uint8_t PAWL_VAR_UINT8
#define PAWL_DECL_uint16_t(name, ...) uint16_t name;
#define PAWL_ROW_uint16_t(base, use, name, ...) PAWL_ONE_(base, use, name, uint16_t, UINT16)
#define PAWL_INIT_uint16_t(...) PAWL_VALUE_(__VA_ARGS__)
#define PAWL_VAR_OF_uint16_t PAWL_VAR_UINT16
#define PAWL_DECL_uint32_t(name, ...) uint32_t name;
#define PAWL_ROW_uint32_t(base, use, name, ...) PAWL_ONE_(base, use, name, uint32_t, UINT32)
#define PAWL_INIT_uint32_t(...) PAWL_VALUE_(__VA_ARGS__)
#define PAWL_VAR_OF_uint32_t PAWL_VAR_UINT32
#define PAWL_DECL_uint64_t(name, ...) uint64_t name;
#define PAWL_ROW_uint64_t(base, use, name, ...) PAWL_ONE_(base, use, name, uint64_t, UINT64)
#define PAWL_INIT_uint64_t(...) PAWL_VALUE_(__VA_ARGS__)
#define PAWL_VAR_OF_uint64_t PAWL_VAR_UINT64
#define PAWL_DECL_float(name, ...) float name;
#define PAWL_ROW_float(base, use, name, ...) PAWL_ONE_(base, use, name, float, FLOAT)
#define PAWL_INIT_float(...) PAWL_VALUE_(__VA_ARGS__)
#define PAWL_VAR_OF_float PAWL_VAR_FLOAT
#define PAWL_DECL_double(name, ...) double name;
#define PAWL_ROW_double(base, use, name, ...) PAWL_ONE_(base, use, name, double, DOUBLE)
#define PAWL_INIT_double(...) PAWL_VALUE_(__VA_ARGS__)
#define PAWL_VAR_OF_double PAWL_VAR_DOUBLE
#define PAWL_DECL_bool(name, ...) bool name;
#define PAWL_ROW_bool(base, use, name, ...) PAWL_ONE_(base, use, name, bool, BOOL)
#define PAWL_INIT_bool(...) PAWL_VALUE_(__VA_ARGS__)
#define PAWL_VAR_OF_bool PAWL_VAR_BOOL
#define PAWL_DECL__Bool(name, ...) bool name;
#define PAWL_ROW__Bool(base, use, name, ...) PAWL_ONE_(base, use, name, bool, BOOL)
#define PAWL_INIT__Bool(...) PAWL_VALUE_(__VA_ARGS__)
#define PAWL_VAR_OF__Bool PAWL_VAR_BOOL
#define PAWL_DECL_text(name, size, ...) char name[size];
#define PAWL_ROW_text(base, use, name, size, ...) \
    { #name, PAWL_VAR_TEXT, offsetof(base, name), (size), 0, 0, NULL, PAWL_USE_##use },
#define PAWL_INIT_text(name, size, ...) PAWL_BRACED_(name, __VA_ARGS__)
#define PAWL_BRACED_(name, first, ...) .name = { first },
#define PAWL_DECL_json(name, size, ...) char name[size];
#define PAWL_ROW_json(base, use, name, size, ...) \
    { #name, PAWL_VAR_JSON, offsetof(base, name), (size), 0, 0, NULL, PAWL_USE_##use },
#define PAWL_INIT_json(name, size, ...) PAWL_BRACED_(name, __VA_ARGS__)
#define PAWL_DECL_list(name, kind, max, ...) \
    kind name[max]; \
    uint32_t name##_count;
#define PAWL_ROW_list(base, use, name, kind, max, ...) \
    PAWL_MANY_(base, use, name, kind, PAWL_VAR_OF_##kind, max)
#define PAWL_INIT_list PAWL_NOTHING_
#define PAWL_DECL_texts(name, size, max, ...) \
    char name[max][size]; \
    uint32_t name##_count;
#define PAWL_ROW_texts(base, use, name, size, max, ...) \
    { #name, PAWL_VAR_TEXT, offsetof(base, name), (size), max, offsetof(base, name##_count), NULL, PAWL_USE_##use },
#define PAWL_INIT_texts PAWL_NOTHING_
#define PAWL_DECL_part(name, type, ...) struct type name;
#define PAWL_ROW_part(base, use, name, type, ...) \
    { #name, PAWL_VAR_STRUCT, offsetof(base, name), sizeof(struct type), 0, 0, type##_fields_, PAWL_USE_##use },
#define PAWL_INIT_part PAWL_NOTHING_
#define PAWL_DECL_parts(name, type, max, ...) \
    struct type name[max]; \
    uint32_t name##_count;
#define PAWL_ROW_parts(base, use, name, type, max, ...) \
    { #name, PAWL_VAR_STRUCT, offsetof(base, name), sizeof(struct type), max, \
      offsetof(base, name##_count), type##_fields_, PAWL_USE_##use },
#define PAWL_INIT_parts PAWL_NOTHING_

#endif
