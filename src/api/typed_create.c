/* typed_create.c - pawl_create(): an instance of a definition, or of an inline declaration. */
#include "api/shards.h"
#include "api/typed_args.h"

static pawl_status check_values(struct scope *scope, const pawl_create_args *from,
                                struct create_args *out)
{
    struct node *node;

    TRY(check_json(scope, "input", out->input, &node));
    TRY(check_json(scope, "instance_metadata", out->metadata, &node));
    TRY(defect_status(scope, metadata_defect(node))); /* saying nothing is a mistake (D5) */
    TRY(check_json(scope, "labels", out->labels, &node));
    if (node && node->kind != NODE_OBJECT)
        return scope_fail(scope, PAWL_INVALID_REQUEST, "labels: expected an object, found %s",
                          node_kind_name(node->kind));
    TRY(check_labels(scope, node));
    TRY(check_ref(scope, "actor_ref", out->actor));
    TRY(check_ref(scope, "subject_ref", out->subject));
    TRY(check_ref(scope, "correlation_id", out->correlation));
    return defect_status(scope, time_defect(scope, "instantiated_at", str_of(from->instantiated_at),
                                            &out->has_instantiated_at, &out->instantiated_at_ms));
}

/* A bad value is reported in its place: after a bad declaration (D14). */
static void create_args_of(struct scope *scope, const pawl_create_args *from,
                           struct create_args *out)
{
    *out = (struct create_args){ .definition = str_of(from->definition),
                                 .declaration = str_of(from->declaration),
                                 .input = supplied(from->input),
                                 .labels = supplied(from->labels),
                                 .metadata = supplied(from->instance_metadata),
                                 .actor = supplied(from->actor_ref),
                                 .subject = supplied(from->subject_ref),
                                 .correlation = supplied(from->correlation_id),
                                 .test = from->test,
                                 .is_singleton = from->singleton };
    out->late_status = check_values(scope, from, out);
    out->late_words = late_words(scope, out->late_status);
}

static pawl_status create_key(struct scope *scope, const pawl_create_args *args,
                              struct create_args *out)
{
    struct key_member members[] = {
        TEXT_MEMBER("definition", args->definition),
        JSON_MEMBER("declaration", args->declaration),
        JSON_MEMBER("input", args->input),
        TEXT_MEMBER("actor_ref", args->actor_ref),
        TEXT_MEMBER("subject_ref", args->subject_ref),
        TEXT_MEMBER("correlation_id", args->correlation_id),
        JSON_MEMBER("labels", args->labels),
        JSON_MEMBER("instance_metadata", args->instance_metadata),
        TEXT_MEMBER("instantiated_at", args->instantiated_at),
        JSON_MEMBER("test", args->test ? "true" : NULL),
        JSON_MEMBER("singleton", args->singleton ? "true" : NULL),
    };

    if (!args->idempotency_key)
        return PAWL_OK;
    return key_of_members(scope, STR_NONE, str_of(args->idempotency_key), "instance.create",
                          members, MEMBER_COUNT(members), &out->key);
}

/* What cannot be right whatever the store says comes first, as it does in the table of operations.
 */
static pawl_status check_form(struct scope *scope, const pawl_create_args *args)
{
    str definition = str_of(args->definition);

    if (definition.data && !args->declaration && str_is_utf8(definition, false) &&
        str_is_blank(definition))
        return scope_fail(scope, PAWL_INVALID_REQUEST, "'definition' is blank");
    if (args->singleton && (args->declaration || !supplied(args->subject_ref).data))
        return scope_fail(scope, PAWL_INVALID_REQUEST, SINGLETON_WORDS);
    return PAWL_OK;
}

pawl_status pawl_create(pawl *p, const pawl_create_args *args, pawl_id *out, pawl_error *error)
{
    struct scope scope;
    struct create_args create;
    struct created created;
    pawl_status status;

    TRY(API_NEED(error, GIVEN(p), GIVEN(args), GIVEN(out)));
    api_enter(p, &scope);
    create_args_of(&scope, args, &create);
    status = check_form(&scope, args);
    if (!status)
        status = create_key(&scope, args, &create);
    if (!status)
        status = engine_create(shard_for_create(p, &create)->engine, &scope, &create, &created);
    if (!status)
        memcpy(out->text, created.id, sizeof out->text);
    return api_leave(&scope, status, error);
}
