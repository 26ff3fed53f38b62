/* deaths.c - turns of code and calls of tools that run in this very process, and what became of
 * them.
 *
 * A module's process may die in its stead; here the host dies, and is started again, and the event
 * comes again: a timer that crashes would do so for ever, and so would a tool. So the program notes
 * which turns it is taking and which calls it is making (FILE-turns). What was under way when the
 * process died has one death more; at DEATHS_MAX in a row it is not done again, and its instance is
 * paused as for any mistake of its author.
 *
 * A mistake in the code is in all instances of its type. Once one of them was paused, the next one
 * is paused at its first death; and after TYPE_MAX of them within an hour the type is held in this
 * program: no turn of it is taken until the program was stopped in order, one of the instances is
 * resumed, or the hour is over.
 *
 * Calls take their time, so that many of them are under way at a death. Those that were at all
 * deaths but the last are made one at a time: the next death tells which of them it was. */
#include "code/code.h"
#include "engine/parts.h"
#include "model/words.h"

#define DEATHS_MAX 3u /* fewer may be kills from outside that happened to hit the same turn */
#define TYPE_MAX   3u
#define TYPE_MS    3600000
#define HASHES     (UINT64_C(1) << 63) /* names that are no numbers of instances */

static void write_mark(struct engine *engine, uint32_t slot)
{
    turns_mark(&engine->actors.deaths.file, slot, &engine->actors.deaths.marks[slot]);
}

/* ---- Marks ---- */

struct range {
    uint32_t from, to;
};
static const struct range turn_range = { 0, TURN_MARKS };
static const struct range call_range = { TURN_MARKS, TURN_MARKS + CALL_MARKS };
static const struct range type_range = { TURN_MARKS + CALL_MARKS, MARKS };

/* NULL: not found. */
static struct turn_mark *find_mark(struct deaths *deaths, struct range range, uint64_t name)
{
    for (uint32_t i = range.from; i < range.to; i++)
        if (deaths->marks[i].name == name)
            return &deaths->marks[i];
    return NULL;
}

/* The mark of this name, else a free one, else that of a death which nothing has come to since. */
static struct turn_mark *get_mark(struct deaths *deaths, struct range range, uint64_t name)
{
    struct turn_mark *found = find_mark(deaths, range, name);

    if (!found)
        found = find_mark(deaths, range, 0);
    for (uint32_t i = range.from; !found && i < range.to; i++)
        if (!deaths->marks[i].is_running)
            found = &deaths->marks[i];
    return found;
}

/* *number: of the mark, for deaths_end(). Where all are in use it is not noted, nor is a start just
 * like another one. */
static void begin(struct engine *engine, struct range range, uint64_t name, uint32_t *number)
{
    struct deaths *deaths = &engine->actors.deaths;
    struct turn_mark *mark = get_mark(deaths, range, name);

    ASSERT_HOLDS(&engine->actors.deaths.lock);
    if (!mark || (mark->name == name && mark->is_running))
        return;
    *mark = (struct turn_mark){ .name = name,
                                .deaths = mark->name == name ? mark->deaths : 0,
                                .is_running = 1 };
    *number = (uint32_t)(mark - deaths->marks) + 1;
    write_mark(engine, *number - 1);
}

/* Has it died too often? Then resume tries it once more. */
static bool is_deadly(struct engine *engine, struct range range, uint64_t name, uint32_t limit)
{
    struct turn_mark *mark = find_mark(&engine->actors.deaths, range, name);

    ASSERT_HOLDS(&engine->actors.deaths.lock);
    if (!mark || mark->is_running || mark->deaths < limit)
        return false;
    mark->deaths = limit - 1;
    write_mark(engine, (uint32_t)(mark - engine->actors.deaths.marks));
    return true;
}

void deaths_end(struct engine *engine, uint32_t *number)
{
    if (!*number)
        return;
    guard_lock(&engine->actors.deaths.lock);
    engine->actors.deaths.marks[*number - 1] = (struct turn_mark){ 0 };
    write_mark(engine, *number - 1);
    guard_unlock(&engine->actors.deaths.lock);
    *number = 0;
}

/* ---- The file ---- */

static void count_deaths(struct engine *engine)
{
    struct turn_mark *marks = engine->actors.deaths.marks;

    for (uint32_t i = 0; i < MARKS; i++) {
        if (!marks[i].is_running)
            continue;
        marks[i].is_running = 0;
        marks[i].deaths++;
        write_mark(engine, i);
    }
}

static void take_over(struct engine *engine, uint32_t slot, const struct turn_mark *mark)
{
    struct range range = slot < turn_range.to   ? turn_range
                         : slot < call_range.to ? call_range
                                                : type_range;
    struct turn_mark *own = get_mark(&engine->actors.deaths, range, mark->name);
    uint32_t before = own && own->name == mark->name ? own->deaths : 0;

    if (!mark->name || !own)
        return;
    *own = *mark;
    own->deaths += before;
    write_mark(engine, (uint32_t)(own - engine->actors.deaths.marks));
}

/* What programs that shared the store left when they died: this may be one of them, restarted. */
static void inherit(struct engine *engine, const uint8_t store_id[STORE_ID_SIZE])
{
    struct turn_mark marks[MARKS];

    for (uint32_t i = engine->actors.deaths.file.number + 1; i < TURN_FILES; i++) {
        if (!turns_inherit(engine->store, store_id, i, marks))
            continue;
        for (uint32_t slot = 0; slot < MARKS; slot++)
            take_over(engine, slot, &marks[slot]);
    }
}

bool deaths_open(struct engine *engine)
{
    struct deaths *deaths = &engine->actors.deaths;
    const uint8_t *store_id = engine->writer.tip.store_id;
    bool is_open;

    guard_lock(&deaths->lock);
    if (!deaths->is_tried) {
        deaths->is_tried = true;
        deaths->is_open = turns_open(engine->store, store_id, &deaths->file, deaths->marks);
        if (deaths->is_open) {
            inherit(engine, store_id);
            count_deaths(engine);
        }
    }
    is_open = deaths->is_open;
    guard_unlock(&deaths->lock);
    return is_open;
}

void deaths_close(struct engine *engine)
{
    bool is_empty = true;

    deaths_forgive(engine);
    for (uint32_t i = 0; i < MARKS; i++)
        is_empty = is_empty && !engine->actors.deaths.marks[i].name;
    if (engine->actors.deaths.is_open)
        turns_close(engine->store, &engine->actors.deaths.file, is_empty);
    engine->actors.deaths.is_open = false;
}

/* ---- Turns ---- */

static bool takes_turn(const struct event *event)
{
    return event->kind == EVENT_START || event->kind == EVENT_TIMER ||
           event->kind == EVENT_SIGNAL || event->kind == EVENT_STEP_DONE ||
           event->kind == EVENT_STEP_FAILED || event->kind == EVENT_STEP_TIMEOUT ||
           event->kind == EVENT_CHILD || event->kind == EVENT_WAKE;
}

static uint64_t hash_text(uint64_t hash, str text)
{
    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (uint8_t)text.data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t name_of(const struct actor *actor, const struct event *event)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    if (event->kind != EVENT_START)
        return actor->instance;
    hash = hash_text(hash, actor->definition->plan_text);
    return hash_text(hash, event->payload) | HASHES;
}

static bool is_counted(const struct engine *engine, const struct actor *actor,
                       const struct event *event)
{
    return engine->actors.deaths.is_open && !actor->is_paused && actor->definition->kind == KIND_CODE &&
           takes_turn(event) && code_runs_here(actor->definition);
}

/* ---- Types ---- */

static uint64_t name_of_type(const struct actor *actor)
{
    return hash_text(UINT64_C(0xcbf29ce484222325), code_type_name(actor->definition)) | HASHES;
}

/* Instances of its type that were paused within the hour. */
static uint32_t count_of_type(struct engine *engine, const struct actor *actor)
{
    const struct turn_mark *mark =
        find_mark(&engine->actors.deaths, type_range, name_of_type(actor));

    ASSERT_HOLDS(&engine->actors.deaths.lock);
    return mark && clock_wall(engine) - mark->at_ms < TYPE_MS ? mark->deaths : 0;
}

static void count_one_more(struct engine *engine, const struct actor *actor)
{
    uint32_t count = count_of_type(engine, actor) + 1;
    struct turn_mark *mark = get_mark(&engine->actors.deaths, type_range, name_of_type(actor));

    ASSERT_HOLDS(&engine->actors.deaths.lock);
    *mark = (struct turn_mark){ .name = name_of_type(actor),
                                .deaths = count,
                                .at_ms = clock_wall(engine) };
    write_mark(engine, (uint32_t)(mark - engine->actors.deaths.marks));
}

void deaths_forgive(struct engine *engine)
{
    guard_lock(&engine->actors.deaths.lock);
    for (uint32_t i = type_range.from; engine->actors.deaths.is_open && i < type_range.to; i++)
        if (engine->actors.deaths.marks[i].name) {
            engine->actors.deaths.marks[i] = (struct turn_mark){ 0 };
            write_mark(engine, i);
        }
    guard_unlock(&engine->actors.deaths.lock);
}

/* As if the program had not got the code: what comes waits. */
static pawl_status refuse_type(struct scope *scope, const struct actor *actor)
{
    return scope_fail(scope, PAWL_NOT_KNOWN,
                      "code type '%.*s' is held in this program, because its turns ended the "
                      "process again and again; correct it, start the program again, then resume "
                      "what was paused",
                      STR_ARG(words_shown(code_type_name(actor->definition))));
}

static pawl_status poison(struct engine *engine, struct scope *scope, uint32_t deaths,
                          struct event *event)
{
    struct buf buf;

    buf_init(&buf, engine->heap, LIMIT_TEXT);
    buf_fmt(&buf, deaths > 1 ? "its turn ended the process %u times in a row"
                             : "its turn ended the process, as did others of its type",
            deaths);
    event->poison = buf_take(&buf, &scope->arena);
    return event->poison.data ? PAWL_OK : scope_no_memory(scope);
}

pawl_status deaths_begin(struct engine *engine, const struct actor *actor, struct event *event,
                         struct scope *scope, uint32_t *number)
{
    uint32_t of_type, limit;
    uint64_t name;
    bool is_poison = false;

    *number = 0;
    if (!is_counted(engine, actor, event))
        return PAWL_OK;
    name = name_of(actor, event);
    guard_lock(&engine->actors.deaths.lock);
    of_type = count_of_type(engine, actor);
    limit = of_type ? 1 : DEATHS_MAX;
    if (of_type < TYPE_MAX)
        is_poison = is_deadly(engine, turn_range, name, limit);
    if (is_poison)
        count_one_more(engine, actor);
    else if (of_type < TYPE_MAX)
        begin(engine, turn_range, name, number);
    guard_unlock(&engine->actors.deaths.lock);
    if (of_type >= TYPE_MAX)
        return refuse_type(scope, actor);
    return is_poison ? poison(engine, scope, limit, event) : PAWL_OK;
}

/* ---- Calls ---- */

/* One name for all attempts, as their key is one. */
static uint64_t name_of_call(uint64_t instance, const struct flow_call *call)
{
    uint64_t hash = (UINT64_C(0xcbf29ce484222325) ^ instance) * UINT64_C(0x100000001b3);

    if (call->own_key.data)
        return hash_text(hash, call->own_key) | HASHES;
    return ((hash ^ call->first_ordinal) * UINT64_C(0x100000001b3)) | HASHES;
}

/* Programs and requests do not end the process, and a flow's steps have a bound for their attempts.
 * A call of code has none of its own: it is counted whatever its tool. */
static bool call_is_counted(struct engine *engine, const struct actor *actor,
                            const struct flow_call *call)
{
    return (actor->definition->kind == KIND_CODE ||
            toolbox_is_of_host(engine->toolbox, call->tool)) &&
           deaths_open(engine);
}

/* Nothing has died of a call of an instance that is being created. */
enum death_verdict deaths_ask(struct engine *engine, const struct actor *actor, struct job *job)
{
    struct deaths *deaths = &engine->actors.deaths;
    enum death_verdict verdict = DEATHS_FEW;
    const struct turn_mark *mark;

    job->is_counted = call_is_counted(engine, actor, &job->call);
    if (!job->is_counted || !actor->instance)
        return verdict;
    guard_lock(&deaths->lock);
    mark = find_mark(deaths, call_range, name_of_call(actor->instance, &job->call));
    if (mark && !mark->is_running && mark->deaths >= DEATHS_MAX)
        verdict = DEATHS_MANY;
    else if (mark && mark->deaths == DEATHS_MAX - 1 && deaths->is_alone)
        verdict = DEATHS_WAIT;
    else if (mark && mark->deaths == DEATHS_MAX - 1)
        job->is_alone = deaths->is_alone = true;
    deaths->has_waiting = deaths->has_waiting || verdict == DEATHS_WAIT;
    guard_unlock(&deaths->lock);
    return verdict;
}

/* The start of a call is refused: its instance is paused, or waits until another call is over. */
pawl_status deaths_refuse(struct engine *engine, const struct actor *actor,
                          const struct flow_call *call, enum death_verdict verdict,
                          struct scope *scope)
{
    if (verdict == DEATHS_WAIT)
        return scope_fail(scope, PAWL_OVERLOADED,
                          "step '%.*s' was under way at %u deaths of the process: it waits until "
                          "it can be run alone",
                          STR_ARG(call->step), DEATHS_MAX - 1);
    guard_lock(&engine->actors.deaths.lock);
    (void)is_deadly(engine, call_range, name_of_call(actor->instance, call), DEATHS_MAX);
    guard_unlock(&engine->actors.deaths.lock);
    return scope_fail(scope, PAWL_PAUSED,
                      "the tool '%.*s' cannot be called again: step '%.*s' ended the process %u "
                      "times in a row; correct it, then resume",
                      STR_ARG(words_shown(call->tool)), STR_ARG(words_shown(call->step)),
                      DEATHS_MAX);
}

void deaths_begin_call(struct engine *engine, struct job *job, uint32_t *number)
{
    *number = 0;
    if (!job->is_counted)
        return;
    guard_lock(&engine->actors.deaths.lock);
    begin(engine, call_range, name_of_call(job->instance, &job->call), number);
    guard_unlock(&engine->actors.deaths.lock);
}

/* It was the one that is run alone: the next may be. */
void deaths_leave(struct engine *engine, const struct job *job)
{
    if (!job->is_alone)
        return;
    guard_lock(&engine->actors.deaths.lock);
    engine->actors.deaths.is_alone = false;
    if (engine->actors.deaths.has_waiting)
        engine->work.ready_lost = true; /* they are ready in the store */
    engine->actors.deaths.has_waiting = false;
    guard_unlock(&engine->actors.deaths.lock);
}
