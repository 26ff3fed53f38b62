/* engine_int.h - private to src/engine: what its files call of each other. Who may touch what
 * stands in engine_types.h. */
#ifndef PAWL_ENGINE_ENGINE_INT_H
#define PAWL_ENGINE_ENGINE_INT_H

#include "engine/engine_types.h"
#include "engine/health.h"

/* batch.c */
void batch_init(struct batch *batch, const struct heap *heap);
void batch_fini(struct batch *batch);
void batch_clear(struct batch *batch);
pawl_status batch_reserve(struct engine *engine, struct scope *scope, uint32_t records,
                          uint32_t live);
struct head *batch_find(struct batch *batch, uint64_t instance);
struct head *batch_put(struct batch *batch, const struct head *head);
/* Where `instance` stands for this batch: pending, cached, or loaded. NOT_KNOWN. The pointer
 * holds until the next batch_head(). */
pawl_status batch_head(struct engine *engine, struct scope *scope, uint64_t instance,
                       struct head **out);
/* Append one entry; space is reserved. `key` may be NULL. */
pawl_status batch_entry(struct engine *engine, struct scope *scope, struct head *head,
                        const struct definition *definition, const struct draft *draft,
                        int64_t at_ms, int64_t fired_at_ms, const uint8_t *key);
/* The store's own chain, instance 0. */
uint8_t head_flags(const struct instance_row *fixed, bool is_paused); /* of a head that was read */
pawl_status batch_store_head(struct engine *engine, struct scope *scope, struct head **out);
/* Append one control record with this body to the store's chain; space is reserved. */
pawl_status batch_store_record(struct engine *engine, struct scope *scope, int32_t what,
                               int64_t at_ms, str body, str payload, const uint8_t *key);
bool batch_kept_room(struct batch *batch); /* for one more token or alarm; false: no memory */
/* Something was half put in: the whole batch fails with `status`, which is returned. */
pawl_status batch_spoil(struct engine *engine, const struct scope *scope, pawl_status status);
/* Append the record of a kept signal; space is reserved. */
pawl_status batch_keep_signal(struct engine *engine, struct scope *scope, struct head *head,
                              const struct draft *draft, int64_t at_ms, const uint8_t *key);
void batch_seal(struct engine *engine, struct head *head, struct record *record, const char *id,
                str body, const struct commitments *commitments);
uint64_t batch_new_value(struct engine *engine, str bytes, bool interned,
                         const uint8_t **commitment);
/* An entry's payload. The end of a flow repeats what its last step gave: one value serves both. */
uint64_t batch_payload(struct engine *engine, uint64_t instance, str bytes,
                       const uint8_t **commitment);
/* When the instance came into its state: the time of its last entry, or of its creation. */
pawl_status batch_entered_at(struct engine *engine, struct scope *scope, const struct head *head,
                             int64_t *out);
pawl_status batch_know_skip(struct engine *engine, struct scope *scope, struct head *head);
pawl_status heads_make_whole(struct engine *engine, struct scope *scope, struct head *head);
struct record *batch_record(struct engine *engine, int32_t what, struct head *head, int64_t at_ms);

/* signals.c */
pawl_status signal_kept_name(struct scope *scope, const struct record *record, str *out);

/* keys.c */
enum key_use { KEY_NEW, KEY_REPEAT, KEY_PENDING };
bool keys_reserve(struct batch *batch);                           /* room for one more */
void keys_note(struct batch *batch, const struct record *record); /* it has a key */
/* In the drain: what is this key? NULL is new. REPEAT: *record is what it was used for; PENDING:
 * it is being used in this batch. CONFLICT: it was used for another call. */
pawl_status keys_look(struct engine *engine, struct scope *scope, const uint8_t *key, int64_t at_ms,
                      enum key_use *use, struct record *record);
/* The record it was used for: NOT_KNOWN, CONFLICT. */
pawl_status keys_find(struct engine *engine, struct scope *scope, const uint8_t *key,
                      struct record *out);
/* A call was refused with *status; was it because it had been accepted before? *status becomes
 * CONFLICT if its key was used for another one. */
bool keys_explain(struct engine *engine, struct scope *scope, const uint8_t *key,
                  pawl_status *status, struct record *record);
pawl_status keys_fired(struct engine *engine, struct scope *scope, const struct record *record,
                       struct fired *out);
pawl_status keys_created(struct engine *engine, struct scope *scope, const struct record *record,
                         struct created *out);
pawl_status keys_defined(struct engine *engine, struct scope *scope, const struct record *record,
                         struct define_request *out);

/* intern.c */
bool intern_init(struct intern_table *table, const struct heap *heap);
void intern_fini(struct intern_table *table);
void intern_clear(struct intern_table *table);
pawl_status intern(struct engine *engine, struct scope *scope, str bytes, uint64_t *id,
                   const uint8_t **commitment);

/* definitions.c */
pawl_status definitions_get(struct engine *engine, struct scope *scope, uint32_t id,
                            struct definition_slot **out);
/* The definition of the instance that stands at `head`; a head that names no state of it is
 * STORAGE_FAILURE: the store is damaged. */
pawl_status definitions_of(struct engine *engine, struct scope *scope, const struct head *head,
                           struct definition_slot **out);
pawl_status definition_compile(struct scope *scope, str text, bool is_inline,
                               struct findings *findings, struct definition **out, str *name);
pawl_status definition_row_make(struct engine *engine, struct scope *scope, str source,
                                const struct definition *definition, struct definition_row *out);
pawl_status definition_put(struct engine *engine, struct scope *scope,
                           struct define_request *define);
void definitions_fini(struct engine *engine);

/* attach.c: what a host may have rolled back. */
pawl_status attached_check(struct engine *engine, struct scope *scope, uint32_t id);
pawl_status attached_note(struct engine *engine, struct scope *scope);
void attached_fini(struct engine *engine);
void definition_slot_free(struct engine *engine, struct definition_slot *slot);

/* code_types.c */
void definitions_bind(struct engine *engine,
                      struct definition_slot *slot); /* to its handler, if here */

pawl_status drain_define(struct engine *engine, struct request *request, int64_t at_ms);

/* commit.c */
uint32_t commit_slice(const struct engine *engine); /* how many lagging rows should go along */
pawl_status commit_batch(struct engine *engine, uint32_t slice);
bool commit_accept(struct engine *engine); /* false: memory is short, start over */

/* drain.c */
pawl_status engine_submit(struct engine *engine, struct request *request); /* and wait */
void engine_submit_all(struct engine *engine, struct request **requests, size_t count);
void engine_post_request(struct engine *engine, struct request *request);  /* `after` is called */
void engine_post_all(struct engine *engine, struct request *list);
void engine_lead(struct engine *engine);    /* drain what is queued, as leader */
bool engine_drain(struct engine *engine);   /* once, if it is for this thread to do */
void engine_sweep(struct engine *engine);   /* an owner's rows, until none lags */
void engine_mend(struct engine *engine);    /* see whether a store that failed works again */
void engine_changed(struct engine *engine); /* wake who waits for it */
void engine_cond_init(pthread_cond_t *condition); /* for this: */
void engine_wait_for(struct engine *engine, pthread_cond_t *condition, int64_t for_ms);
void engine_wait_changed(struct engine *engine, int64_t for_ms);

/* fire.c, create.c, decide.c */
void drain_fires(struct engine *engine, struct request *request, int64_t at_ms);
void drain_create(struct engine *engine, struct request *request, int64_t at_ms);
void drain_decision(struct engine *engine, struct request *request, int64_t at_ms);
pawl_status fire_check_late(struct engine *engine, struct scope *scope,
                            const struct fire_args *args, uint64_t instance, uint32_t seq,
                            struct moment now);
void fired_tell(const struct head *head, const struct definition *definition, struct fired *out);

/* references.c: warns of definitions that a text named `name` refers to and that are not stored. */
pawl_status references_check(struct engine *engine, struct scope *scope, str name,
                             struct findings *findings);
bool references_are_known(struct engine *engine, struct scope *scope);

/* create.c, for family.c: which version, what START decides, the records, and afterwards. */
pawl_status create_resolve(struct engine *engine, struct scope *scope,
                           const struct create_args *args, struct definition_row *row,
                           struct definition **definition);
pawl_status create_decide(struct engine *engine, struct scope *scope,
                          const struct create_args *args, struct actor *actor,
                          int64_t decided_at_ms, str failure, struct decision *decision,
                          struct job **jobs);
pawl_status create_record(struct engine *engine, struct scope *scope, struct create_request *create,
                          int64_t at_ms);
void create_over(struct engine *engine, const struct create_request *create, struct actor *actor,
                 struct job *jobs, bool is_refused);

/* decide.c: the entries of a decision and what they cause; a key rides in the last. A failure in
 * the middle fails the whole batch. */
pawl_status decision_record(struct engine *engine, struct scope *scope, struct head *head,
                            const struct definition *definition, const struct decision *decision,
                            int64_t decided_at_ms, int64_t at_ms, int64_t fired_at_ms,
                            const uint8_t *key);

/* An amended instance goes on by a plan that its definition does not know. */
static inline bool family_is_possible(const struct engine *engine,
                                      const struct definition *definition)
{
    return definition->may_spawn || (definition->kind != KIND_MACHINE && engine->has_amends);
}

/* Did we fail, and not what was asked for? */
static inline bool family_is_ours(pawl_status status)
{
    return status == PAWL_NO_MEMORY || status == PAWL_STORAGE_FAILURE ||
           status == PAWL_OUTCOME_UNKNOWN;
}

/* family.c, family_end.c. Before the drain: resolve and start what the decision wants to spawn, on
 * top of it where that fails. `rights`: what the actor may create; NULL: read them. The caller
 * always passes `births` to family_over(), also after a failure. */
pawl_status family_conceive(struct engine *engine, struct scope *scope, struct actor *actor,
                            const str *rights, int64_t at_ms, struct decision *decision,
                            struct birth **births);
/* In the drain: give them numbers, so that the decision's entries can tell their ids; record them;
 * and cancel those whom the decision has left behind. */
void family_number(struct engine *engine, struct birth *births, uint64_t parent,
                   const uint8_t random[ID_RANDOM_SIZE]);
/* What a birth decided, and the next one. */
const struct decision *family_decision(const struct birth *birth, const struct birth **next);
pawl_status family_bear(struct engine *engine, struct scope *scope, struct birth *births,
                        int64_t at_ms);
pawl_status family_part(struct engine *engine, struct scope *scope, uint64_t parent,
                        const struct definition *definition, const struct decision *decision,
                        int64_t at_ms);
/* After the commit, or its refusal; who has ended; and their parents are told, one by
 * one (false: nobody is left). */
void family_over(struct engine *engine, struct birth *births, bool is_refused);
void family_note(struct engine *engine, const struct batch *batch);
bool family_tell(struct engine *engine);
void family_fini(struct engine *engine);
/* Children of `parent` (0: of all) whose end it has not heard of: it could not, or we died. */
pawl_status family_look(struct engine *engine, struct scope *scope, uint64_t parent);

/* live.c */
void live_from_draft(struct engine *engine, struct head *head, const struct definition *definition,
                     const struct draft *draft, int64_t at_ms, bool ends);
uint32_t live_room(const struct decision *decision);

/* actors.c */
struct actor *actor_new(struct engine *engine);
void actor_free(struct engine *engine, struct actor *actor);
void actors_fini(struct engine *engine);
pawl_status actor_adopt(struct engine *engine, struct actor *actor);
struct actor *actor_get(struct engine *engine, uint64_t instance); /* NULL: no memory */
pawl_status actor_load(struct engine *engine, struct scope *scope, struct actor *actor);
/* The context of a flow, running or ended, folded from its entries; lock not held. */
pawl_status restore_context(struct engine *engine, struct scope *scope, uint64_t instance,
                            str *out);
void actors_load(struct engine *engine, struct actor *const *actors,
                 uint32_t count); /* those whose turn is ours; a hint: no failure is told */
pawl_status head_row_now(struct engine *engine, struct scope *scope, uint64_t instance,
                         struct head_row *out); /* as an owner knows it, or the store */

/* poison.c: lock not held. noted: its instance has to be held, with the scope's words. */
bool poison_noted(struct actor *actor, const struct mail *mail, struct scope *scope,
                  pawl_status status);
/* Pauses the instance. Returns the event's `status`, or the error that kept it from being
 * paused. */
pawl_status poison_hold(struct engine *engine, struct scope *scope, const struct actor *actor,
                        pawl_status status, bool *is_held);
pawl_status poison_rests(struct engine *engine, struct scope *scope, const struct actor *actor);
pawl_status poison_stand(struct engine *engine, struct scope *scope, struct actor *actor);
pawl_status poison_cancel(struct engine *engine, struct actor *actor, const struct event *event,
                          struct scope *scope, struct decision *out);
pawl_status poison_holds(struct engine *engine, struct scope *scope, uint64_t pause_pos, bool *out);
pawl_status poison_free(struct engine *engine, const struct actor *actor, const struct event *event,
                        struct scope *scope, uint64_t *pos, struct decision *out);

/* bars.c: does the definition in force forbid cancelling a flow that has these rows? bars_look() is
 * for the drain and takes the definition that the instance began with. */
bool bars_cancel(const struct definition *definition, const struct live *live);
pawl_status bars_look(struct engine *engine, struct scope *scope, const struct head *head,
                      const struct definition *definition, bool *out);

/* bounds.c: PAUSED with the reason if an instance is over a bound. For one at rest: */
void bounds_init(struct engine_options *options);
pawl_status bounds_standing(const struct engine *engine, struct scope *scope, uint32_t seq,
                            uint32_t live_steps);
/* For one that has folded an event or made a decision; sets actor->is_at_bound. */
pawl_status bounds_event(const struct engine *engine, struct actor *actor,
                         const struct event *event, uint32_t seq_before, struct scope *scope);
pawl_status bounds_decision(const struct engine *engine, struct actor *actor, struct scope *scope);

/* alarms.c */
pawl_status alarms_fire_due(struct engine *engine, struct scope *scope, const struct moment *now);
pawl_status alarms_next(struct engine *engine, struct scope *scope, bool wall,
                        int64_t *out); /* by one of the clocks */
/* In the drain. alarm_permits(), before an alarm's request: is the alarm in force? alarm_fired(),
 * after it was accepted: ends the alarm. */
bool alarm_permits(struct engine *engine, struct request *request);
void alarm_fired(struct engine *engine, struct request *request, int64_t at_ms);
bool alarm_counts_key(struct engine *engine, const struct scope *scope,
                      int64_t used_at_ms); /* even if older than 7 days */

/* snapshots.c: one whenever as much has been written since the last as it would cost; else none. */
str snapshot_if_due(struct engine *engine, struct actor *actor, struct scope *scope,
                    const struct decision *decision);

/* payloads.c: its memory may leave payloads in the history from now on. */
void payloads_attach(struct engine *engine, struct actor *actor);
/* Of the entries behind those that are in the store the actor has folded `all`, and is folding
 * `more`; NULL: none. */
void payloads_decide(struct actor *actor, const struct decision *all, const struct decision *more);

/* mailbox.c */
pawl_status actor_step(struct actor *actor, const struct event *event, struct scope *scope,
                       struct decision *out);
void actor_restamp(struct actor *actor, const struct decision *decision); /* after its commit */
/* Is a signal that was kept there for something that waits? */
bool actor_wakes(const struct engine *engine, const struct actor *actor);
bool actor_has_kept(const struct engine *engine, const struct actor *actor); /* also of code */
pawl_status actor_decide(struct engine *engine, struct actor *actor, const struct event *event,
                         struct scope *scope, struct decision *out, struct job **jobs);
void actor_compact(struct actor *actor); /* what was folded away goes, now and then */
pawl_status engine_send(struct engine *engine, struct scope *scope, uint64_t instance,
                        const struct event *event, const struct fire_args *fire,
                        struct fired *out); /* fire and out may be NULL */
/* The same for a signal; *is_kept: nothing takes it yet. */
pawl_status mail_signal(struct engine *engine, struct scope *scope, uint64_t instance,
                        const struct event *event, const uint8_t *key, bool *is_kept);
pawl_status engine_send_once(struct engine *engine, struct scope *scope, uint64_t instance,
                             const struct event *event, const struct fire_args *fire,
                             const uint8_t *key, struct fired *out);
struct mail *mail_new(struct engine *engine);
void mail_free(struct engine *engine, struct mail *mail);
/* Those that rode along may have filled the scope: what is in it of the mail itself is moved. */
void mail_renew_scope(struct engine *engine, struct mail *mail);
void mail_wake(struct engine *engine, uint64_t instance); /* EVENT_WAKE */
pawl_status mail_wake_all(struct engine *engine, struct scope *scope, const uint64_t *numbers,
                          uint32_t count); /* not held */
void mail_fini(struct engine *engine);                                         /* the spare ones */
bool engine_mail(struct engine *engine, uint64_t instance, struct mail *mail);
void engine_pass_news(struct engine *engine); /* of children that have ended */
bool engine_pump(struct engine *engine);      /* one unit of waiting work, if any */
void mail_drop_all(struct engine *engine);    /* at close: their causes are still in the store */

/* pause.c */
pawl_status pause_look(struct engine *engine, struct scope *scope, uint64_t instance, bool *out);
bool pause_bars(enum event_kind kind);
/* Pauses an instance whose code ends its process, or that is at a bound. The scope's error becomes
 * the reason; if the pause fails, the scope holds that error instead. */
pawl_status pause_poisoned(struct engine *engine, struct scope *scope, const struct actor *actor);
/* In the drain, with room reserved for one record: pauses the instance at its bound, with the
 * scope's error as the reason. Returns PAUSED with the same message. */
pawl_status pause_at_bound(struct engine *engine, struct scope *scope, struct head *head,
                           int64_t at_ms);
/* In the drain, likewise: pauses it behind the entry of an event whose turn is owed. */
pawl_status pause_with_entry(struct engine *engine, struct scope *scope, struct head *head,
                             str reason, int64_t at_ms);
/* After the commit: it is logged, if the decision paused its instance. */
void pause_told(struct engine *engine, const struct decision *decision);
pawl_status pause_refusal(struct scope *scope);

/* reduces.c */
pawl_status reduces_of(struct engine *engine, struct scope *scope, const struct decision *decision,
                       const struct birth *births, struct request *request);
bool reduces_any(const struct decision *decision);
bool reduces_failed(const struct request *request);
str reduces_error(struct engine *engine, struct scope *scope);
void reduces_fini(struct engine *engine);

/* steps.c */
pawl_status steps_chain(struct engine *engine, struct actor *actor, struct scope *scope,
                        const struct event *event, struct decision *decision, uint32_t *seen,
                        struct job **jobs); /* of the drafts from *seen on */
void steps_act(struct engine *engine, uint64_t instance, struct job *jobs);
void steps_drop(struct engine *engine, struct job *jobs);
void steps_start_ready(struct engine *engine); /* the first of the list */
bool steps_add_ready(struct engine *engine, uint64_t instance, uint32_t ordinal,
                     uint64_t since);
/* One that waited before: here, or in its tool's queue, at its age. */
bool steps_wait_again(struct engine *engine, str tool, str creator, uint64_t instance,
                      uint32_t ordinal, uint64_t since);
void steps_note_ready(struct engine *engine, const struct actor *actor,
                      const struct decision *decision);
/* The job of a step that is to be started, in front of the others; *out is left alone if its
 * arguments are too large. NOT_AWAITING: its tool is not here, or not what was claimed; as
 * ticket_charge(). Then it is decided, and the job is the mail's. */
pawl_status steps_prepare(struct engine *engine, struct actor *actor, const struct mail *mail,
                          struct scope *scope, struct job **jobs, struct job **out);
void steps_hand_over(struct mail *mail, struct job *job, const struct decision *decision,
                     uint32_t from);
pawl_status steps_fail_started(struct actor *actor, struct scope *scope, const struct event *start,
                               struct decision *decision);
void steps_lose_ready(struct engine *engine);
bool steps_are_lost(const struct engine *engine);    /* it is time to look */
bool steps_can_start(const struct engine *engine);   /* some are ready */
void steps_leave_unserved(struct engine *engine, const struct actor *actor,
                          const struct mail *mail);
void steps_forget_ready(struct engine *engine); /* all of it is looked up anew */

/* ages.c `oldest` is a heap; NULL: it is empty. */
struct ready_step *ready_new(struct engine *engine, uint64_t instance, uint32_t ordinal,
                             uint64_t since); /* NULL: no memory */
bool ready_is_older(const struct ready_step *a, const struct ready_step *b);
void ready_put(struct ready_step **oldest, struct ready_step *steps); /* one, or another heap */
struct ready_step *ready_take(struct ready_step **oldest);            /* NULL: none */
struct ready_step *ready_list(struct ready_step **oldest); /* all, by `next`, in no order */
void ready_free(struct engine *engine, struct ready_step **oldest);
/* Since which position each step of `live` is ready; 0: it is not. In the scope. */
pawl_status ages_look(struct engine *engine, struct scope *scope, uint64_t instance,
                      const struct live *live, uint64_t **out);

/* runners.c */
bool runner_reserve(struct engine *engine, str tool); /* takes the lock: a place for one more */
void runner_add(struct engine *engine, struct job *job); /* it was started: run it */
bool runner_run_one(struct engine *engine);              /* one unit of work, by the caller */
void runners_withdraw(struct engine *engine, const struct batch *batch); /* steps that are over */
void runners_fini(struct engine *engine);
bool runners_init(struct engine *engine); /* no lock; room for its threads */
void runners_join(struct engine *engine); /* no lock; when the engine stops */
void *runner_thread(void *engine);
void job_free(struct engine *engine, struct job *job);

/* leases.c */
bool leases_make_room(struct engine *engine, uint32_t more);
void lease_add(struct engine *engine, const struct lease *lease);
bool lease_is_watched(struct engine *engine, uint64_t instance, uint32_t ordinal);
/* Is the step still held by the lease that the claim gave? */
bool lease_is_given(struct engine *engine, const struct claimed *claimed);
void lease_drop(struct engine *engine, uint64_t instance, uint32_t ordinal);
bool lease_is_held(struct engine *engine, uint64_t instance, uint32_t ordinal, str token);
bool lease_extend(struct engine *engine, uint64_t instance, uint32_t ordinal, str token,
                  int64_t by_ms, int64_t *out_expires_at_ms);
/* Give a timeout its reason: whose lease ran out. Other events are left alone. Lock not held. */
void lease_explain(struct engine *engine, struct scope *scope, const struct actor *actor,
                   struct event *event);
int64_t leases_left_ms(struct engine *engine);
void leases_expire(struct engine *engine);
void leases_fini(struct engine *engine);
void lease_hash(struct engine *engine, str token, char out[LEASE_HASH_SIZE + 1]);

/* starters.c: the actor of the entry that started an attempt; 0: not found. Lock not held. */
void starters_init(struct engine *engine);
void starters_fini(struct engine *engine);
pawl_status starter_find(struct engine *engine, struct scope *scope, uint64_t instance,
                         uint32_t ordinal, uint64_t *out_actor);

/* claims.c */
bool claims_add(struct engine *engine, str tool, uint64_t instance, uint32_t ordinal,
                uint64_t since);
void claims_forget(struct engine *engine);
void claims_release(struct engine *engine);
void claims_amended(struct engine *engine, const struct actor *actor); /* tools may be others now */
void claims_fini(struct engine *engine);
bool claims_wait(const struct engine *engine, const struct claim_args *args); /* steps, for these */
/* Is it their turn, before what a worker's answers make ready? Asked once for each turn. */
bool claims_insist(struct engine *engine, const struct claim_args *args);
/* Steps that are left are told to others who wait for them; lock not held. */
void claims_pass_on(struct engine *engine, const struct claim_args *args);
/* The lease goes into the entry and the row that the commit writes; after it the step is the
 * worker's. */
void claim_tell(const struct claimed *claim, const struct decision *decision, uint32_t from);
void claim_hand_out(struct engine *engine, uint64_t instance, struct claimed *claim,
                    struct job *job);
/* Lock not held. */
void claim_token(struct engine *engine, struct claimed *claimed);
pawl_status claim_now(struct engine *engine, struct scope *scope, const struct claim_args *args,
                      struct ticket *ticket, struct claimed *out,
                      uint32_t *count); /* appends to those that are there */
uint32_t claims_unpack(struct engine *engine, struct claimed *claimed,
                       uint32_t count); /* those that were started move to the front */

/* read.c. NOT_KNOWN: the instance has no entry, or it is not behind the creation. */
/* gates.c: what is known of those among them that wait for an approval. */
pawl_status why_gates(struct engine *engine, struct scope *scope, const struct head *head,
                      const struct definition *definition, const struct live *live,
                      struct waiting *waiting, uint32_t count);
pawl_status read_first_entry(struct engine *engine, struct scope *scope,
                             const struct instance_row *row, struct record *out);

/* rights.c: what may be created (model/rights.h); data NULL: anything. rights_of_instance(): by
 * this instance, now. rights_of_creation(): by an instance that a starter with these rights
 * creates. */
pawl_status rights_of_instance(struct engine *engine, struct scope *scope, uint64_t instance,
                               str *out);
pawl_status rights_of_creation(struct engine *engine, struct scope *scope, str starter,
                               const struct definition_row *row, str *out);
pawl_status rights_check(struct scope *scope, str rights, str reference); /* name or name@version;
                                                                              FORBIDDEN */
/* In the drain, after a create record and after a define record, with space reserved. They write
 * nothing where there is no limit. */
pawl_status rights_record(struct engine *engine, struct scope *scope, struct head *head,
                          const char *id, str rights, int64_t at_ms);
pawl_status rights_note(struct engine *engine, struct scope *scope,
                        const struct definition_row *row);

/* starts.c: what this transition starts, as an operation for later, and room for it in the batch,
 * whose heads may be elsewhere then. The entry is not there yet. */
pawl_status start_prepare(struct engine *engine, struct scope *scope, const struct head *head,
                          const struct definition *definition, const struct transition *transition,
                          const struct event *event, str *out);
/* kept.c */
pawl_status kept_room(struct engine *engine, struct scope *scope);
pawl_status kept_start(struct engine *engine, struct scope *scope, str operation, int64_t at_ms);
pawl_status kept_fired(struct engine *engine, struct scope *scope, str id, int64_t at_ms);
/* Records that an alarm is firing, unless that is recorded already; *since_ms: from when on. */
pawl_status kept_firing(struct engine *engine, struct scope *scope, str id, int64_t *since_ms);
bool kept_changes_here(const struct batch *batch, int32_t what, str id);

/* tickets.c: a place for a step of this tool, or NULL; lock not held. Settled by whoever reserved
 * it, when its commit is over. */
struct claimed *ticket_reserve(struct engine *engine, const struct flow_call *step,
                               uint32_t ordinal);
void ticket_settle(struct engine *engine, struct claimed *claimed, bool is_granted);
/* Before a step that was taken from its queue is started: is the client there, and has the answer
 * room? OVERLOADED: it stays ready. The check is made before its instance is loaded, and again with
 * the size of its arguments. Lock not held. */
pawl_status ticket_check(struct engine *engine, struct scope *scope, struct claimed *claimed);
pawl_status ticket_charge(struct engine *engine, struct scope *scope, struct claimed *claimed,
                          size_t size);
void ticket_give_back(struct claimed *claimed); /* it was not started */
bool ticket_serves(const struct claimed *claimed, str tool);
void tickets_call(struct engine *engine, str tool); /* one of them: a step waits */
void tickets_call_all(struct engine *engine);
uint32_t tickets_count(const struct engine *engine); /* that wait */
int64_t mail_retry_ms(const struct engine *engine);
void mail_deliver(struct engine *engine, struct actor *actor, struct mail *mail);
/* Those that are not done, before any of them is decided, and to the drain together. */
void mail_deliver_all(struct engine *engine, struct mail *const *mails, uint32_t count);
void steps_fini(struct engine *engine);

/* deadlines.c */
void deadlines_arm(struct engine *engine, const struct head *head,
                   const struct definition *definition,
                   int64_t at_ms); /* those of its state; room for all is reserved */
/* Fire the timers of machines among `due` and take them out of the list; those that could not be
 * fired and are still armed are added to *refused. */
pawl_status deadlines_fire(struct engine *engine, struct scope *scope, struct live_timer *due,
                           uint32_t *count, uint32_t *refused);

/* clock.c: clock_read() is for the drain, and for a thread that holds the lock. */
struct moment clock_read(struct engine *engine);
struct moment clock_now(struct engine *engine); /* takes the lock */
int64_t clock_wall(struct engine *engine);      /* the wall clock, or the test clock; any thread */
int64_t clock_at(struct engine *engine); /* what a record made now is stamped with */
/* May something be fired at this time? Called by any thread. */
pawl_status clock_check_fired(struct engine *engine, struct scope *scope,
                              const struct fire_args *args, uint64_t instance,
                              struct moment now);
/* The fired_at of an entry, in the present commit, for which no caller gave a time. */
pawl_status clock_fired_at(struct engine *engine, struct scope *scope, uint64_t instance,
                           int64_t *out);
void clock_start(struct engine *engine); /* at opening, when the tip is known */
void clock_realign(struct engine *engine, struct scope *scope); /* then, by an owner */
void clock_copy_tip(struct engine *engine);
void clock_follow_tip(struct engine *engine);                   /* drain: others have written */
bool clock_has_news(struct engine *engine);
pawl_status clock_note(struct engine *engine, const struct moment *now); /* drain */
pawl_status clock_keep(struct engine *engine, struct scope *scope);
pawl_status clock_keep_test(struct engine *engine, struct scope *scope);
void clock_shifted(struct engine *engine);
void clock_kept(struct engine *engine);

/* code_types.c: the definition of a type that is recorded with its first instance; OK if `reference`
 * (NAME or NAME@VERSION) names none. */
bool code_is_put_when_used(struct engine *engine, str reference);
pawl_status code_put_when_used(struct engine *engine, struct scope *scope, str reference);

/* timers.c */
pawl_status timers_fire_due(struct engine *engine, struct scope *scope,
                            uint32_t *budget); /* NULL: no bound; else what is left of it */
pawl_status timers_look_ahead(struct engine *engine, struct scope *scope); /* as the store knows */
void timers_look_again(struct engine *engine);  /* what could not be fired may be fired now */
int64_t timers_next_due(struct engine *engine); /* timers and leases */
bool timers_are_due(struct engine *engine);
void timers_note(struct engine *engine, const struct batch *batch);
void *timers_thread(void *engine);
void *drain_thread(void *engine);

/* due.c */
void engine_ring(struct engine *engine); /* something may be due earlier, or no more */

/* recover.c */
pawl_status recover(struct engine *engine, struct scope *scope);
void engine_set_tip(struct engine *engine, const struct store_tip *tip); /* by the drain */
pawl_status recover_tail(struct engine *engine, struct scope *scope);
pawl_status recover_steps(struct engine *engine, struct scope *scope);
pawl_status recover_instance(struct engine *engine, struct scope *scope, uint64_t number,
                             bool after_death);
void recover_ready(struct engine *engine);        /* ready steps that could not be remembered */
void commit_note_failure(struct engine *engine, pawl_status status); /* of the last commit */
void commit_note_success(struct engine *engine);
bool commit_is_due_again(struct engine *engine); /* after a failed one */
void engine_ask_witness(struct engine *engine, struct scope *scope);
pawl_status engine_reopen(struct engine *engine); /* by the drain, after OUTCOME_UNKNOWN */

/* entries.c */
struct value_texts { /* the last values read: actors repeat; emptied with the scope */
    uint64_t ids[2];
    str texts[2];
};
/* The words for a record that names no transition. */
pawl_status entry_refuse(struct scope *scope, uint64_t pos);
/* What an entry says by itself and who made it; then its payload and reason. */
pawl_status entry_open(struct engine *engine, struct scope *scope,
                       const struct definition *definition, const struct record *record,
                       struct value_texts *texts, struct entry *out);
pawl_status entry_fill(struct engine *engine, struct scope *scope, struct value_texts *texts,
                       struct entry *entry);
void engine_tell_watcher(struct engine *engine);

/* renewals.c: instances of code types that have a higher version now. */
void renewals_note(struct engine *engine, const struct code_binding *binding);
bool renewals_are_due(const struct engine *engine);
void renewals_run(struct engine *engine); /* a page */

/* amend.c: in the drain, an entry that amends is the head's last one. */
/* deaths.c: turns and calls that the process did not survive. deaths_begin() is for any event: where it
 * takes a turn of code here, that is noted until deaths_end(); one that has died too often gets its
 * `poison`. deaths_ask() is for a call that is to be made here: unless it is DEATHS_FEW it is not started. */
enum death_verdict { DEATHS_FEW, DEATHS_WAIT, DEATHS_MANY };
bool deaths_open(struct engine *engine);
void deaths_close(struct engine *engine);
pawl_status deaths_begin(struct engine *engine, const struct actor *actor, struct event *event,
                         struct scope *scope, uint32_t *mark);
void deaths_end(struct engine *engine, uint32_t *mark); /* 0: none */
enum death_verdict deaths_ask(struct engine *engine, const struct actor *actor, struct job *job);
pawl_status deaths_refuse(struct engine *engine, const struct actor *actor,
                          const struct flow_call *call, enum death_verdict verdict,
                          struct scope *scope);
void deaths_begin_call(struct engine *engine, struct job *job, uint32_t *mark);
void deaths_leave(struct engine *engine, const struct job *job);
void deaths_forgive(struct engine *engine); /* types that are held are tried again */

/* wakes.c: kept signals that a death left with instances that await them. */
void wakes_look(struct engine *engine);
void wakes_look_again(struct engine *engine);
bool wakes_are_due(const struct engine *engine);
void wakes_run(struct engine *engine); /* a page */

/* untaken.c */
void untaken_note(struct engine *engine, const struct mail *mail, pawl_status status);
void untaken_forget(struct engine *engine, uint64_t instance);
bool untaken_of(struct engine *engine, uint64_t instance, struct refusal *out);
void untaken_fini(struct engine *engine);

/* redrives.c */
pawl_status redrive_note(struct engine *engine, struct scope *scope, const struct head *head,
                         const struct draft *draft);
pawl_status redrive_check(struct engine *engine, struct scope *scope,
                          const struct create_args *args);

pawl_status amend_note(struct engine *engine, struct scope *scope, const struct head *head);
/* What an amended flow goes on by: the definition with its plan in force, and its name. Left as
 * they are where nothing was amended. */
pawl_status amended_definition(struct engine *engine, struct scope *scope, const struct head *head,
                               const struct definition **definition);
/* The same in the drain, with the amends of its batch applied. */
pawl_status amended_in_drain(struct engine *engine, struct scope *scope, const struct head *head,
                             const struct definition **definition);
/* The version of the registration that a code instance goes by since its last amend; 0: since its
 * creation. */
pawl_status amended_code_version(struct engine *engine, struct scope *scope,
                                 const struct head *head, uint32_t *out);
pawl_status amended_name(struct engine *engine, struct scope *scope, const struct head *head,
                         str *name, uint32_t *version, bool *is_amended);
/* What the callers that amended it may create; data NULL: anything. */
pawl_status amended_rights(struct engine *engine, struct scope *scope, const struct head *head,
                           str *out);

/* create.c: by name or name@version. NOT_KNOWN. */
pawl_status definition_find_registered(struct engine *engine, struct scope *scope, str text,
                                       struct definition_row *row);

/* read.c */
bool head_is_cached(struct engine *engine, uint64_t number, struct head *out, bool *trust_rows);
/* From the record at `pos` back through an instance's records, some thousands at most, until `see`
 * returns true. It keeps no text of a record. */
typedef bool (*record_sight)(void *context, const struct record *record);
pawl_status records_look_back(struct engine *engine, struct scope *scope, uint64_t pos,
                              record_sight see, void *context);
pawl_status value_text(struct engine *engine, struct scope *scope, uint64_t id, str *out);
pawl_status engine_locate(struct engine *engine, struct scope *scope, str id, struct head *out,
                          struct definition_slot **slot);
pawl_status ref_check(struct scope *scope, const char *what, str ref); /* at most LIMIT_ACTION */
pawl_status id_check(struct scope *scope, str id, uint64_t *number, uint8_t random[ID_RANDOM_SIZE]);

#endif
