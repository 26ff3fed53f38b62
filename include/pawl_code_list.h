/* pawl_code_list.h - how the lists of pawl_code.h are read. Part of that header; nothing here is
 * for users. SPDX-License-Identifier: Apache-2.0
 *
 * A list is read once for each use: `has` is then a macro that picks, by the word in front, one
 * line of that use. A use has lines for its own words only, `, MACRO`; any other word is nothing to
 * it. Every line is given two zeros more, so that `...` is never empty. A new word is a line of
 * PAWL_WORD_ and one of its use. */
#ifndef PAWL_CODE_LIST_H
#define PAWL_CODE_LIST_H

#if defined(__GNUC__)
#pragma GCC system_header /* so that a mistake is shown where the author made it, not in here */
#endif

#define PAWL_NOTHING_(...)
#define PAWL_SECOND_(first, second, ...) second
#define PAWL_PICK_(...) PAWL_SECOND_(__VA_ARGS__, PAWL_NOTHING_, 0)

/* What the compiler refuses with these words. */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define PAWL_REFUSE_UNLESS_(is_right, words) static_assert(is_right, words);
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define PAWL_REFUSE_UNLESS_(is_right, words) _Static_assert(is_right, words);
#else
#define PAWL_REFUSE_UNLESS_(is_right, words)
#endif

/* A name is one word: gcc says so before it says what follows from it. Neither the preprocessor nor
 * clang can look into a text. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus)
#define PAWL_ONE_WORD_(name)                                                                       \
    PAWL_REFUSE_UNLESS_(!__builtin_strpbrk(#name, " =[]*;.-+&"),                                   \
                        #name ": expected the name alone; a first value follows behind a comma")
#else
#define PAWL_ONE_WORD_(...)
#endif

/* What the preprocessor refuses: compilation stops here, so that what follows from the mistake is
 * not said. gcc has one pragma that stops it, and that one names a file. */
#define PAWL_PRAGMA_(...) _Pragma(#__VA_ARGS__)
#if defined(__clang__)
#define PAWL_STOP_(...)                                                                            \
    _Pragma("clang diagnostic fatal \"-W#pragma-messages\"") PAWL_PRAGMA_(GCC warning #__VA_ARGS__)
#elif defined(__GNUC__)
#define PAWL_STOP_(...)                                                                            \
    PAWL_PRAGMA_(GCC error #__VA_ARGS__) _Pragma("GCC dependency \"(stopped at this mistake)\"")
#else
#define PAWL_STOP_(...) PAWL_REFUSE_UNLESS_(0, #__VA_ARGS__)
#endif

/* Nothing is left of a right list where its lines become nothing, or where only wrong words become
 * something. Older compilers ask __VA_OPT__ of a list before it is expanded. */
#if defined(__clang__) ? __clang_major__ >= 14 : defined(__GNUC__) && __GNUC__ >= 12
#define PAWL_NO_MORE_(...)                                                                         \
    __VA_OPT__(PAWL_STOP_(expected lines of has(...) with a backslash behind each but the last,    \
                          found __VA_ARGS__))
#define PAWL_NO_WRONG_(...) __VA_OPT__(PAWL_STOP_(__VA_ARGS__))
/* A line of a list that is in no list: the line above it has lost its backslash. What a program
 * itself calls `has` stays what it is, if its first argument does not begin with an operator; else
 * the program says `#undef has` below the header. C++ has methods of that name, so this is for C
 * alone. */
#if !defined(__cplusplus) && !defined(has)
#define has(...) PAWL_IN_NO_LIST_(__VA_ARGS__, 0)(__VA_ARGS__)
#define PAWL_SAY_HAS_(...) has(PAWL_said_, __VA_ARGS__)
#endif
#else
#define PAWL_NO_MORE_(...)
#define PAWL_NO_WRONG_(...)
#endif

#define PAWL_IN_NO_LIST_(what, ...) PAWL_PICK_LOST_(PAWL_WORD_##what)
#define PAWL_PICK_LOST_(...) PAWL_THIRD_(__VA_ARGS__, PAWL_LOST_, PAWL_OTHER_, 0)
#define PAWL_LOST_(...) PAWL_NO_MORE_(has(__VA_ARGS__))
#define PAWL_OTHER_(...) has(__VA_ARGS__)
/* The same in a message: only inside of itself a macro is not replaced. */
#ifndef PAWL_SAY_HAS_
#define PAWL_SAY_HAS_(...) has(__VA_ARGS__)
#endif
#define PAWL_WORD_PAWL_said_ , , PAWL_SAID_
#define PAWL_SAID_(mark, ...) has(__VA_ARGS__)

/* ---- Words -------------------------------------------------------------- */

#define PAWL_WORDS_(what, ...) PAWL_PICK_WORD_(PAWL_WORD_##what)(what, __VA_ARGS__, 0, 0)
#define PAWL_PICK_WORD_(...) PAWL_SECOND_(__VA_ARGS__, PAWL_WRONG_WORD_, 0)
#define PAWL_WRONG_WORD_(word, ...)                                                                \
    has(word, ...): expected var, input, required, result, timer, signal, call, retry, no_retry,   \
    external, child, buffered, await, version, migrate or renamed
#define PAWL_no_comma_before_(...)
#define PAWL_no_comma_before_the_kind_(word, kind, name, ...)                                      \
    PAWL_PICK_NAMED_(PAWL_NAMED_##name)(word, kind, name)
#define PAWL_no_comma_before_the_name_(word, name, kind, ...) PAWL_KNOWN_KIND_(word, kind, name)
#define PAWL_PICK_NAMED_(...) PAWL_SECOND_(__VA_ARGS__, PAWL_KNOWN_KIND_, 0)
#define PAWL_NAMED_ , PAWL_NAMELESS_
#define PAWL_NAMED_0 , PAWL_NAMELESS_ /* the zero that is added to a line that has no name */
#define PAWL_NAMELESS_(word, found, ...)                                                           \
    PAWL_SAY_HAS_(word, found): expected the kind and the name of a variable, with a comma between \
    them
#define PAWL_WORD_var , PAWL_no_comma_before_the_kind_
#define PAWL_WORD_input , PAWL_no_comma_before_the_kind_
#define PAWL_WORD_required , PAWL_no_comma_before_the_kind_
#define PAWL_WORD_result , PAWL_no_comma_before_the_kind_
#define PAWL_WORD_timer , PAWL_no_comma_before_
#define PAWL_WORD_signal , PAWL_no_comma_before_the_name_
#define PAWL_WORD_call , PAWL_no_comma_before_the_name_
#define PAWL_WORD_retry , PAWL_no_comma_before_
#define PAWL_WORD_no_retry , PAWL_no_comma_before_
#define PAWL_WORD_external , PAWL_no_comma_before_the_name_
#define PAWL_WORD_child , PAWL_no_comma_before_the_name_
#define PAWL_WORD_buffered , PAWL_no_comma_before_
#define PAWL_WORD_await , PAWL_no_comma_before_
#define PAWL_WORD_version , PAWL_no_comma_before_
#define PAWL_WORD_migrate , PAWL_no_comma_before_
#define PAWL_WORD_renamed , PAWL_no_comma_before_

#define PAWL_KNOWN_KIND_(word, kind, name)                                                         \
    PAWL_BY_KIND_(PAWL_KNOWN_, PAWL_KIND_##kind)(kind, name)
#define PAWL_KNOWN_none_(...)
#define PAWL_KNOWN_number_(...)
#define PAWL_KNOWN_text_(...)
#define PAWL_KNOWN_json_(...)
#define PAWL_KNOWN_list_(...)
#define PAWL_KNOWN_texts_(...)
#define PAWL_KNOWN_part_(...)
#define PAWL_KNOWN_parts_(...)
#define PAWL_KNOWN_wrong_(found_, name)                                                            \
    name: expected the kind int8_t to int64_t, uint8_t to uint64_t, float, double, bool, text,     \
    json, list, texts, part or parts, found found_

/* ---- Uses: members of structs, their rows, their first values ----------- */

/* A member of a PAWL_STRUCT has no word, but may be required. */
#define PAWL_PART_MEMBER_(kind, ...) PAWL_PICK_PART_(PAWL_PART_##kind)(kind, __VA_ARGS__, 0, 0)
#define PAWL_PICK_PART_(...) PAWL_SECOND_(__VA_ARGS__, PAWL_DECL_, 0)
#define PAWL_PART_required , PAWL_REQUIRED_PART_
#define PAWL_REQUIRED_PART_(word, ...) PAWL_DECL_(__VA_ARGS__)
#define PAWL_PART_ROW_(kind, ...) PAWL_PICK_PART_ROW_(PAWL_PART_ROW_##kind)(kind, __VA_ARGS__, 0, 0)
#define PAWL_PICK_PART_ROW_(...) PAWL_SECOND_(__VA_ARGS__, PAWL_OWN_ROW_, 0)
#define PAWL_PART_ROW_required , PAWL_REQUIRED_PART_ROW_
#define PAWL_REQUIRED_PART_ROW_(word, ...) PAWL_VAR_ROW_(pawl_self_, member_, __VA_ARGS__)

#define PAWL_MEMBER_(what, ...) PAWL_PICK_(PAWL_MEMBER_##what)(__VA_ARGS__, 0, 0)
#define PAWL_MEMBER_var , PAWL_DECL_
#define PAWL_MEMBER_input , PAWL_DECL_
#define PAWL_MEMBER_required , PAWL_DECL_

#define PAWL_ROW_(what, ...) PAWL_PICK_(PAWL_ROW_##what)(__VA_ARGS__, 0, 0)
#define PAWL_ROW_var , PAWL_OWN_ROW_
#define PAWL_ROW_input , PAWL_INPUT_ROW_
#define PAWL_ROW_required , PAWL_REQUIRED_ROW_
#define PAWL_OWN_ROW_(...) PAWL_VAR_ROW_(pawl_self_, plain_, __VA_ARGS__)
#define PAWL_INPUT_ROW_(...) PAWL_VAR_ROW_(pawl_self_, input_, __VA_ARGS__)
#define PAWL_REQUIRED_ROW_(...) PAWL_VAR_ROW_(pawl_self_, required_, __VA_ARGS__)

#define PAWL_FIRST_(what, ...) PAWL_PICK_(PAWL_FIRST_##what)(__VA_ARGS__, 0, 0)
#define PAWL_FIRST_var , PAWL_INIT_
#define PAWL_FIRST_input , PAWL_INIT_
#define PAWL_FIRST_required , PAWL_INIT_

#define PAWL_GOT_(what, ...) PAWL_PICK_(PAWL_GOT_##what)(__VA_ARGS__, 0, 0)
#define PAWL_GOT_signal , PAWL_PAYLOAD_
#define PAWL_GOT_call , PAWL_PAYLOAD_
#define PAWL_GOT_external , PAWL_PAYLOAD_
#define PAWL_GOT_child , PAWL_PAYLOAD_
#define PAWL_PAYLOAD_(name, kind, ...) PAWL_DECL_(kind, name, __VA_ARGS__)

#define PAWL_GOT_ROW_(what, ...) PAWL_PICK_(PAWL_GOT_ROW_##what)(__VA_ARGS__, 0, 0)
#define PAWL_GOT_ROW_signal , PAWL_PAYLOAD_ROW_
#define PAWL_GOT_ROW_call , PAWL_PAYLOAD_ROW_
#define PAWL_GOT_ROW_external , PAWL_PAYLOAD_ROW_
#define PAWL_GOT_ROW_child , PAWL_PAYLOAD_ROW_
#define PAWL_PAYLOAD_ROW_(name, kind, ...) PAWL_VAR_ROW_(pawl_got_, plain_, kind, name, __VA_ARGS__)

#define PAWL_RESULT_(what, ...) PAWL_PICK_(PAWL_RESULT_##what)(__VA_ARGS__, 0, 0)
#define PAWL_RESULT_result , PAWL_DECL_
#define PAWL_RESULT_ROW_(what, ...) PAWL_PICK_(PAWL_RESULT_ROW_##what)(__VA_ARGS__, 0, 0)
#define PAWL_RESULT_ROW_result , PAWL_OF_RESULT_
#define PAWL_OF_RESULT_(...) PAWL_VAR_ROW_(pawl_result_, plain_, __VA_ARGS__)

/* Two uses: C++ wants members in the order of their struct. */
#define PAWL_VERSIONED_(what, ...) PAWL_PICK_(PAWL_VERSIONED_##what)(__VA_ARGS__, 0, 0)
#define PAWL_VERSIONED_version , PAWL_VERSION_IS_
#define PAWL_VERSION_IS_(number, ...) .version = (number),
#define PAWL_MIGRATED_(what, ...) PAWL_PICK_(PAWL_MIGRATED_##what)(__VA_ARGS__, 0, 0)
#define PAWL_MIGRATED_migrate , PAWL_MIGRATE_IS_
#define PAWL_MIGRATE_IS_(function, ...) .migrate = (function),

/* Old names of variables, and what they are called now. */
#define PAWL_RENAMED_(what, ...) PAWL_PICK_(PAWL_RENAMED_##what)(__VA_ARGS__, 0, 0)
#define PAWL_RENAMED_renamed , PAWL_OLD_AND_NEW_
#define PAWL_OLD_AND_NEW_(from, to, ...) { #from, #to },

/* How calls are tried again, and the errors that are not. */
#define PAWL_RETRY_(what, ...) PAWL_PICK_(PAWL_RETRY_##what)(__VA_ARGS__, 0, 0)
#define PAWL_RETRY_retry , PAWL_POLICY_
#define PAWL_POLICY_(name, max, ...) PAWL_POLICY_ROW_(#name, max, __VA_ARGS__, 0)
#define PAWL_POLICY_ROW_(name, max, first_ms, longest_ms, ...) { name, (max), (first_ms), (longest_ms) },
#define PAWL_NO_RETRY_(what, ...) PAWL_PICK_(PAWL_NO_RETRY_##what)(__VA_ARGS__, 0, 0)
#define PAWL_NO_RETRY_no_retry , PAWL_FINAL_ERROR_
#define PAWL_FINAL_ERROR_(name, error, ...) { #name, (error) },

/* ---- Uses: names, as texts and as enumerators --------------------------- */

#define PAWL_NAME_(name, ...) #name,
#define PAWL_TIMER_(what, ...) PAWL_PICK_(PAWL_TIMER_##what)(__VA_ARGS__, 0, 0)
#define PAWL_TIMER_timer , PAWL_NAME_
#define PAWL_SIGNAL_(what, ...) PAWL_PICK_(PAWL_SIGNAL_##what)(__VA_ARGS__, 0, 0)
#define PAWL_SIGNAL_signal , PAWL_NAME_
#define PAWL_CALL_(what, ...) PAWL_PICK_(PAWL_CALL_##what)(__VA_ARGS__, 0, 0)
#define PAWL_CALL_call , PAWL_NAME_
#define PAWL_EXTERNAL_(what, ...) PAWL_PICK_(PAWL_EXTERNAL_##what)(__VA_ARGS__, 0, 0)
#define PAWL_EXTERNAL_external , PAWL_NAME_
#define PAWL_CHILD_(what, ...) PAWL_PICK_(PAWL_CHILD_##what)(__VA_ARGS__, 0, 0)
#define PAWL_CHILD_child , PAWL_NAME_
#define PAWL_BUFFERED_(what, ...) PAWL_PICK_(PAWL_BUFFERED_##what)(__VA_ARGS__, 0, 0)
#define PAWL_BUFFERED_buffered , PAWL_NAME_
#define PAWL_AWAIT_(what, ...) PAWL_PICK_(PAWL_AWAIT_##what)(__VA_ARGS__, 0, 0)
#define PAWL_AWAIT_await , PAWL_NAME_

#define PAWL_NAME_TIMER_(what, ...) PAWL_PICK_(PAWL_NAME_TIMER_##what)(__VA_ARGS__, 0, 0)
#define PAWL_NAME_TIMER_timer , PAWL_TIMER_NUMBER_
#define PAWL_TIMER_NUMBER_(name, ...) pawl_timer_##name##_,
#define PAWL_NAME_SIGNAL_(what, ...) PAWL_PICK_(PAWL_NAME_SIGNAL_##what)(__VA_ARGS__, 0, 0)
#define PAWL_NAME_SIGNAL_signal , PAWL_SIGNAL_NUMBER_
#define PAWL_SIGNAL_NUMBER_(name, ...) pawl_signal_##name##_,
#define PAWL_NAME_CALL_(what, ...) PAWL_PICK_(PAWL_NAME_CALL_##what)(__VA_ARGS__, 0, 0)
#define PAWL_NAME_CALL_call , PAWL_CALL_NUMBER_
#define PAWL_CALL_NUMBER_(name, ...) pawl_call_##name##_,
#define PAWL_NAME_RETRY_(what, ...) PAWL_PICK_(PAWL_NAME_RETRY_##what)(__VA_ARGS__, 0, 0)
#define PAWL_NAME_RETRY_retry , PAWL_RETRY_NUMBER_
#define PAWL_RETRY_NUMBER_(name, ...) pawl_retry_##name##_ = pawl_call_##name##_,
#define PAWL_NAME_EXTERNAL_(what, ...) PAWL_PICK_(PAWL_NAME_EXTERNAL_##what)(__VA_ARGS__, 0, 0)
#define PAWL_NAME_EXTERNAL_external , PAWL_EXTERNAL_NUMBER_
#define PAWL_EXTERNAL_NUMBER_(name, ...) pawl_external_##name##_,
#define PAWL_NAME_CHILD_(what, ...) PAWL_PICK_(PAWL_NAME_CHILD_##what)(__VA_ARGS__, 0, 0)
#define PAWL_NAME_CHILD_child , PAWL_CHILD_NUMBER_
#define PAWL_CHILD_NUMBER_(name, ...) pawl_child_##name##_,
#define PAWL_NAME_AWAIT_(what, ...) PAWL_PICK_(PAWL_NAME_AWAIT_##what)(__VA_ARGS__, 0, 0)
#define PAWL_NAME_AWAIT_await , PAWL_AWAIT_NUMBER_
#define PAWL_AWAIT_NUMBER_(name, ...) pawl_await_##name##_,
#define PAWL_GO_TO_(what, ...) PAWL_PICK_(PAWL_GO_TO_##what)(__VA_ARGS__, 0, 0)
#define PAWL_GO_TO_await , PAWL_GO_TO_PLACE_
#define PAWL_GO_TO_PLACE_(name, ...)                                                               \
    case pawl_await_##name##_:                                                                     \
        PAWL_no_local_lives_across_an_await_ pawl_place_##name##_;

/* ---- Kinds -------------------------------------------------------------- */

/* The form of a kind: a number, with its type, or one of its own. 0: no kind and no value. */
#define PAWL_KIND_0 , none_
#define PAWL_KIND_int8_t , number_, PAWL_VAR_INT8
#define PAWL_KIND_int16_t , number_, PAWL_VAR_INT16
#define PAWL_KIND_int32_t , number_, PAWL_VAR_INT32
#define PAWL_KIND_int64_t , number_, PAWL_VAR_INT64
#define PAWL_KIND_uint8_t , number_, PAWL_VAR_UINT8
#define PAWL_KIND_uint16_t , number_, PAWL_VAR_UINT16
#define PAWL_KIND_uint32_t , number_, PAWL_VAR_UINT32
#define PAWL_KIND_uint64_t , number_, PAWL_VAR_UINT64
#define PAWL_KIND_float , number_, PAWL_VAR_FLOAT
#define PAWL_KIND_double , number_, PAWL_VAR_DOUBLE
#define PAWL_KIND_bool , number_, PAWL_VAR_BOOL
#define PAWL_KIND__Bool , number_, PAWL_VAR_BOOL
#define PAWL_KIND_text , text_
#define PAWL_KIND_json , json_
#define PAWL_KIND_list , list_
#define PAWL_KIND_texts , texts_
#define PAWL_KIND_part , part_
#define PAWL_KIND_parts , parts_

#define PAWL_BY_KIND_(use, ...) PAWL_BY_FORM_(use, __VA_ARGS__, wrong_, 0)
#define PAWL_BY_FORM_(use, first, form, ...) use##form
#define PAWL_NUMBER_(...)                      PAWL_THIRD_(__VA_ARGS__, 0, 0, 0) /* 0: no number */
#define PAWL_THIRD_(first, second, third, ...) third

/* A member of a struct. */
#define PAWL_DECL_(kind, name, ...)                                                                \
    PAWL_ONE_WORD_(name)                                                                           \
    PAWL_BY_KIND_(PAWL_DECL_, PAWL_KIND_##kind)(kind, name, __VA_ARGS__)
#define PAWL_DECL_none_(...)
#define PAWL_DECL_wrong_(kind, name, ...)                                                          \
    int64_t name;                                                                                  \
    PAWL_REFUSE_UNLESS_(0, #name ": expected the kind int8_t to int64_t, uint8_t to uint64_t, "    \
                           "float, double, bool, text, json, list, texts, part or parts, found "   \
                           #kind)
#define PAWL_DECL_number_(kind, name, ...) kind name;
#define PAWL_DECL_text_(kind, name, size, ...)                                                     \
    char name[(size) > 1 ? (size) : 2];                                                            \
    PAWL_REFUSE_UNLESS_((size) > 1, #kind ", " #name ", SIZE: expected a size of 2 bytes or more")
#define PAWL_DECL_json_ PAWL_DECL_text_
#define PAWL_DECL_list_(kind, name, of, max, ...)                                                  \
    PAWL_REFUSE_UNLESS_(PAWL_NUMBER_(PAWL_KIND_##of) > 0,                                          \
                        "list, " #name ", KIND, MAX: expected the KIND of a number or bool, found " #of) \
    of name[(max) > 0 ? (max) : 1];                                                                \
    PAWL_COUNTED_(kind, name, "KIND, MAX", max)
#define PAWL_DECL_texts_(kind, name, size, max, ...)                                               \
    char name[(max) > 0 ? (max) : 1][(size) > 1 ? (size) : 2];                                     \
    PAWL_REFUSE_UNLESS_((size) > 1, #name ": expected a SIZE of 2 bytes or more")                  \
    PAWL_COUNTED_(kind, name, "SIZE, MAX", max)
#define PAWL_DECL_part_(kind, name, type, ...) struct type name;
#define PAWL_DECL_parts_(kind, name, type, max, ...)                                               \
    struct type name[(max) > 0 ? (max) : 1];                                                       \
    PAWL_COUNTED_(kind, name, "STRUCT, MAX", max)
#define PAWL_COUNTED_(kind, name, form, max)                                                       \
    uint32_t name##_count;                                                                         \
    PAWL_REFUSE_UNLESS_((max) > 0, #kind ", " #name ", " form ": expected a MAX of 1 or more")

/* Its row, by its use: is it an input, is it required? */
#define PAWL_USE_plain_ false, false
#define PAWL_USE_input_ true, false
#define PAWL_USE_member_ false, true
#define PAWL_USE_required_ true, true
#define PAWL_NO_ROW_ { NULL, PAWL_VAR_INT64, 0, 0, 0, 0, NULL, false, false }
#define PAWL_VAR_ROW_(base, use, kind, name, ...)                                                  \
    PAWL_BY_KIND_(PAWL_ROW_OF_, PAWL_KIND_##kind)(base, use, kind, name, __VA_ARGS__)
#define PAWL_ROW_OF_none_(...)
#define PAWL_ROW_OF_wrong_(...)
#define PAWL_ONE_ROW_(base, use, name, type, fields)                                             \
    { #name, type, offsetof(base, name), sizeof(((base *)0)->name), 0, 0, fields, PAWL_USE_##use },
#define PAWL_MANY_ROW_(base, use, name, type, max, fields)                                       \
    { #name, type, offsetof(base, name), sizeof(((base *)0)->name[0]), max,                        \
      offsetof(base, name##_count), fields, PAWL_USE_##use },
#define PAWL_ROW_OF_number_(base, use, kind, name, ...)                                          \
    PAWL_ONE_ROW_(base, use, name, PAWL_NUMBER_(PAWL_KIND_##kind), NULL)
#define PAWL_ROW_OF_text_(base, use, kind, name, ...)                                            \
    PAWL_ONE_ROW_(base, use, name, PAWL_VAR_TEXT, NULL)
#define PAWL_ROW_OF_json_(base, use, kind, name, ...)                                            \
    PAWL_ONE_ROW_(base, use, name, PAWL_VAR_JSON, NULL)
#define PAWL_ROW_OF_list_(base, use, kind, name, of, max, ...)                                   \
    PAWL_MANY_ROW_(base, use, name, (pawl_var_type)PAWL_NUMBER_(PAWL_KIND_##of), max, NULL)
#define PAWL_ROW_OF_texts_(base, use, kind, name, size, max, ...)                                \
    PAWL_MANY_ROW_(base, use, name, PAWL_VAR_TEXT, max, NULL)
#define PAWL_ROW_OF_part_(base, use, kind, name, type, ...)                                      \
    PAWL_ONE_ROW_(base, use, name, PAWL_VAR_STRUCT, type##_fields_)
#define PAWL_ROW_OF_parts_(base, use, kind, name, type, max, ...)                                \
    PAWL_MANY_ROW_(base, use, name, PAWL_VAR_STRUCT, max, type##_fields_)

/* Its first value. */
#define PAWL_INIT_(kind, name, ...)                                                                \
    PAWL_BY_KIND_(PAWL_INIT_, PAWL_KIND_##kind)(kind, name, __VA_ARGS__)
#define PAWL_INIT_none_(...)
#define PAWL_INIT_wrong_(...)
#define PAWL_INIT_number_(kind, name, first, ...) .name = (first),
#define PAWL_INIT_text_(kind, name, size, first, ...) .name = { first },
#define PAWL_INIT_json_ PAWL_INIT_text_
#define PAWL_INIT_list_(...)
#define PAWL_INIT_texts_(...)
#define PAWL_INIT_part_(...)
#define PAWL_INIT_parts_(...)

#endif
