/* The hot path of the probe in C: what an event of a training loop writes into the black box.

Between two steps the caches hold the model, and each Python object and function that an event touches costs
a miss. These hooks do the same writes as the Python functions that they are made with (`slow`), for the case
that comes again and again; whatever else comes is handed to that function. Where no compiler was, this file
is not built, and Python does it all. `event_fields.py` loads it, `event_hooks.py` makes the hooks.

- The fields of what both use (`here`, box, slot, group, pass) are those of the types below, from which
  Python's classes derive. So each number is in one place, and either side may do any event.
- The GIL is held throughout, except within what is called. After each call into Python anything may have
  happened (a signal's handler, another thread, a collection): what is used afterwards is held by a reference
  of its own, and what may have changed is looked at once more.
- A box exports the buffer of its map, so that the mmap cannot be closed while the box lives: nothing is
  written to pages that are gone. In a forked child `here.box` is None before any of its Python runs.
- Readers in other processes take a record as whole if the counts at both of its ends are equal, and read a
  ring's entry once they see its number: each write is a release, so that none overtakes those before it.
- The stable ABI of Python 3.9. METH_FASTCALL and the buffer protocol became part of it later, in 3.10 and
  3.11, and are declared here: in 3.9 and 3.10, of which no new versions come, they have just this form. */
#define Py_LIMITED_API 0x03090000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>
#include <time.h>

/* What Python and C agree on; `event_fields.py` compares it. REVISION: of fields and of what hooks are given. */
#ifndef SOURCE_CRC
#define SOURCE_CRC 0 /* of this file, from which it is known whether what was built is of it */
#endif
enum { REVISION = 1, BOX_VERSION = 6, SIZE = 327680, STEP_AT = 256, RING_AT = 301056, RING = 64 };
enum { CALLS = 1024, OP_LAST = 13, NAME_AT = 40, NAME_BYTES = 64, TRAINING = 7 };

#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
typedef struct { /* Py_buffer */
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} View;
enum { WRITABLE = 1 }; /* PyBUF_WRITABLE */
extern int PyObject_GetBuffer(PyObject *, View *, int);
extern void PyBuffer_Release(View *);

static double monotonic(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void put(uint64_t *at, uint64_t number) { __atomic_store_n(at, number, __ATOMIC_RELEASE); }
static void put32(uint32_t *at, uint32_t number) { __atomic_store_n(at, number, __ATOMIC_RELEASE); }
static void put_double(uint64_t *at, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    put(at, bits);
}

/* ---- The types that Python's classes derive from. Their references form no cycles: none is collected. */

/* Objects are T_OBJECT_EX, as Python's slots are: Python reads these faster than others. */
#define FIELD(Type, kind, name) {#name, kind, offsetof(Type, name), 0, NULL}
#define END {NULL, 0, 0, 0, NULL}
#define NO_MORE {NULL, NULL, 0, NULL}
#define FAST(function, name) {name, (PyCFunction)(void (*)(void))function, METH_FASTCALL, NULL}
/* What they begin with: the map, once `attach` was called, and what keeps it; one reference, or NULL. */
#define HEAD(reference) PyObject_HEAD uint64_t *words; View *view; PyObject *reference
typedef struct {
    HEAD(reference);
} Fields;

typedef struct {
    HEAD(box); /* one of ours, None, or whatever was set: see `open_box` */
    PyObject *is_pausing;
    double memory_due;
} Process;
static PyMemberDef Process_fields[] = {FIELD(Process, T_OBJECT_EX, box), FIELD(Process, T_DOUBLE, memory_due),
                                       FIELD(Process, T_OBJECT_EX, is_pausing), END};

typedef struct {
    HEAD(main_slot);
    PyObject *ints;
    unsigned long ident;
    int phase_code;
    unsigned long long steps;
    double input, sync, loss, all_input, all_sync;
} Box;
static PyMemberDef Box_fields[] = {
    FIELD(Box, T_OBJECT_EX, main_slot), FIELD(Box, T_OBJECT_EX, ints), FIELD(Box, T_ULONG, ident), FIELD(Box, T_INT, phase_code),
    FIELD(Box, T_ULONGLONG, steps), FIELD(Box, T_DOUBLE, input), FIELD(Box, T_DOUBLE, sync),
    FIELD(Box, T_DOUBLE, loss), FIELD(Box, T_DOUBLE, all_input), FIELD(Box, T_DOUBLE, all_sync), END};

typedef struct {
    HEAD(name);
    Py_ssize_t index;
    unsigned long long count;
    double spent, since;
    int depth;
    char main;
} Slot;
static PyMemberDef Slot_fields[] = {
    FIELD(Slot, T_OBJECT_EX, name), FIELD(Slot, T_PYSSIZET, index), FIELD(Slot, T_ULONGLONG, count),
    FIELD(Slot, T_DOUBLE, spent), FIELD(Slot, T_DOUBLE, since), FIELD(Slot, T_INT, depth),
    FIELD(Slot, T_BOOL, main), END};

typedef struct {
    HEAD(thread); /* a slot */
    Py_ssize_t ring_index, call_index, index;
    unsigned long long number, trial;
    unsigned int digest, path;
    char busy;
} Group;
static PyMemberDef Group_fields[] = {
    FIELD(Group, T_OBJECT_EX, thread), FIELD(Group, T_PYSSIZET, ring_index), FIELD(Group, T_PYSSIZET, call_index),
    FIELD(Group, T_PYSSIZET, index), FIELD(Group, T_ULONGLONG, number), FIELD(Group, T_ULONGLONG, trial),
    FIELD(Group, T_UINT, digest), FIELD(Group, T_UINT, path), FIELD(Group, T_BOOL, busy), END};

typedef struct {
    HEAD(counts); /* the view in which `index` is that of its count */
    Py_ssize_t index;
    unsigned long long batches, sampled_next;
} Pass;
static PyMemberDef Pass_fields[] = {FIELD(Pass, T_OBJECT_EX, counts), FIELD(Pass, T_PYSSIZET, index),
                                    FIELD(Pass, T_ULONGLONG, batches), FIELD(Pass, T_ULONGLONG, sampled_next), END};

typedef struct {
    HEAD(unused);
    unsigned long long only_id; /* id() of the optimizer that alone trains, or 0 */
    long every;                 /* parameters are hashed every so many steps; 0: never */
} Steps;
static PyMemberDef Steps_fields[] = {FIELD(Steps, T_ULONGLONG, only_id), FIELD(Steps, T_LONG, every), END};

/* Of every type but the hooks. */
static void free_fields(PyObject *self)
{
    Fields *fields = (Fields *)self;
    PyTypeObject *type = Py_TYPE(self);
    fields->words = NULL;
    if (fields->view != NULL)
        PyBuffer_Release(fields->view);
    PyMem_Free(fields->view);
    Py_CLEAR(fields->reference);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

_Static_assert(offsetof(Box, ints) == offsetof(Process, is_pausing), "see free_two");
static void free_two(PyObject *self) /* of a box or a process, which have two references */
{
    Py_CLEAR(((Box *)self)->ints);
    free_fields(self);
}

static PyObject *attach(PyObject *self, PyObject *map)
{
    Fields *fields = (Fields *)self;
    View *view = PyMem_Calloc(1, sizeof *view);
    if (view == NULL)
        return PyErr_NoMemory();
    if (PyObject_GetBuffer(map, view, WRITABLE) < 0) {
        PyMem_Free(view);
        return NULL;
    }
    if (fields->view != NULL || view->len != SIZE || (uintptr_t)view->buf % sizeof(uint64_t)) {
        PyBuffer_Release(view);
        PyMem_Free(view);
        PyErr_SetString(PyExc_ValueError, "not the map of a black box, or a second one");
        return NULL;
    }
    fields->view = view;
    fields->words = view->buf;
    Py_RETURN_NONE;
}

static PyObject *wrong_arguments(void)
{
    PyErr_SetString(PyExc_TypeError, "not what this is called with");
    return NULL;
}

/* Python's objects say where they are in the map; they are held to be within it all the same. */
static int is_within(const void *object, Py_ssize_t index, Py_ssize_t count, Py_ssize_t bytes)
{
    return ((const Fields *)object)->words != NULL && index >= 0 && index <= SIZE / bytes - count;
}
static int is_group_within(const Group *group)
{
    return is_within(group, group->call_index, 3, 8) && is_within(group, group->ring_index, 3 * CALLS, 4);
}

/* Count one finished step; return the time (s). */
static double count_step(Box *box)
{
    unsigned long long count = ++box->steps;
    double now = monotonic();
    /* The ring's entry before the count: a reader that sees the step reads its times there. */
    uint64_t *entry = box->words + RING_AT / 8 + count % RING * 3, *at = box->words + STEP_AT / 8;
    put_double(entry, now);
    put_double(entry + 1, box->input);
    put_double(entry + 2, box->sync);
    put(at, count);
    put_double(at + 2, now);
    put_double(at + 3, box->all_input += box->input);
    put_double(at + 4, box->all_sync += box->sync);
    put_double(at + 5, box->loss);
    put(at + 1, count);
    put(at + 6, count);
    box->input = box->sync = 0.0;
    return now;
}

/* Count one call of a group, made `now`; its indexes are within the map. */
static void count_call(Group *group, uint32_t signature, uint32_t required, uint32_t place_number, double now)
{
    unsigned long long number = ++group->number;
    uint32_t *entry = (uint32_t *)group->words + group->ring_index + number % CALLS * 3;
    uint64_t *at = group->words + group->call_index;
    /* The ring's entry first: a reader that sees the number finds what it was. */
    put32(entry, group->digest = group->digest * 1000003u + required);
    put32(entry + 1, group->path = group->path * 1000003u + place_number);
    put32(entry + 2, signature);
    put(at, number);
    put_double(at + 1, now);
    put(at + 2, number);
}

/* Write the name of the operation that is being entered: most loops enter one again and again. */
static void rename_slot(Slot *slot, PyObject *name)
{
    char written[NAME_BYTES] = {0}, *text;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(name, &text, &length) < 0) {
        PyErr_Clear();
        return;
    }
    memcpy(written, text, length < NAME_BYTES ? (size_t)length : NAME_BYTES);
    memcpy((char *)(slot->words + slot->index) + NAME_AT, written, NAME_BYTES);
    PyObject *before = slot->name;
    Py_INCREF(name);
    slot->name = name;
    Py_XDECREF(before);
}

/* Enter an operation, the `number`-th of this group (0: of none); the slot is within the map. */
static void enter_slot(Slot *slot, PyObject *name, uint64_t group, uint64_t number, double now)
{
    uint64_t *at = slot->words + slot->index;
    unsigned long long count = ++slot->count;
    put(at, count);
    if (slot->name != name)
        rename_slot(slot, name);
    put_double(at + 1, slot->since = now);
    put(at + 3, 1 + group);
    put(at + 4, number);
    put(at + OP_LAST, count);
}

/* Leave it again; return how long it took (s). */
static double leave_slot(Slot *slot)
{
    double lasted = monotonic() - slot->since;
    uint64_t *at = slot->words + slot->index;
    put_double(at + 2, slot->spent += lasted);
    put(at + 3, 0);
    return lasted;
}

static PyObject *Box_step(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    return is_within(self, 0, 1, 8) ? PyFloat_FromDouble(count_step((Box *)self)) : wrong_arguments();
}

/* call(signature, required, place number, now) */
static PyObject *Group_call(PyObject *self, PyObject *const *given, Py_ssize_t n)
{
    unsigned long long numbers[3] = {0};
    for (int i = 0; n == 4 && i < 3; i++)
        numbers[i] = PyLong_AsUnsignedLongLongMask(given[i]);
    double now = n == 4 ? PyFloat_AsDouble(given[3]) : 0.0;
    if (PyErr_Occurred())
        return NULL;
    if (n != 4 || !is_group_within((Group *)self))
        return wrong_arguments();
    count_call((Group *)self, (uint32_t)numbers[0], (uint32_t)numbers[1], (uint32_t)numbers[2], now);
    Py_RETURN_NONE;
}

/* enter(name, group=0, number=0, now=0.0) */
static PyObject *Slot_enter(PyObject *self, PyObject *const *given, Py_ssize_t n)
{
    Slot *slot = (Slot *)self;
    unsigned long long group = n > 1 ? PyLong_AsUnsignedLongLong(given[1]) : 0;
    unsigned long long number = n > 2 ? PyLong_AsUnsignedLongLong(given[2]) : 0;
    double now = n > 3 ? PyFloat_AsDouble(given[3]) : 0.0;
    if (PyErr_Occurred())
        return NULL;
    if (n < 1 || n > 4 || !PyBytes_Check(given[0]) || !is_within(slot, slot->index, OP_LAST + 1, 8))
        return wrong_arguments();
    if (++slot->depth == 1)
        enter_slot(slot, given[0], group, number, now != 0.0 ? now : monotonic());
    Py_RETURN_NONE;
}

static PyObject *Slot_leave(PyObject *self, PyObject *Py_UNUSED(name))
{
    Slot *slot = (Slot *)self;
    if (!is_within(slot, slot->index, OP_LAST + 1, 8))
        return wrong_arguments();
    /* Else it was not entered: a signal's handler raised before. */
    if (slot->depth > 0 && --slot->depth == 0)
        leave_slot(slot);
    Py_RETURN_NONE;
}

static PyObject *Slot_rename(PyObject *self, PyObject *name)
{
    Slot *slot = (Slot *)self;
    if (!PyBytes_Check(name) || !is_within(slot, slot->index, OP_LAST + 1, 8))
        return wrong_arguments();
    rename_slot(slot, name);
    Py_RETURN_NONE;
}

/* ---- Hooks: what is called in the place of one function of a framework. */

typedef enum { SAME, ADDRESS, ANY_OF_TYPE } How;
typedef struct {
    PyObject *key;   /* the keyword, or NULL */
    PyObject *value; /* SAME and ANY_OF_TYPE hold a reference, ADDRESS does not */
    How how;
} Given;
enum { MAX_GIVEN = 6, MEMOS = 64, MEMO_BITS = 6 };
typedef struct { /* a call that comes again: from its place, with its signature */
    PyObject *code, *dtype, *box, *group;
    long place;
    long long elements;
    Py_ssize_t n_args, n_given;
    uint32_t signature, required, place_number;
    Given given[MAX_GIVEN]; /* what is given beside the tensor */
} Memo;

/* References of a hook: the function in whose place it is, the one in Python, and what each event uses.
   STEP: STATE are Steps, FIRST reads the memory. BATCH: FIRST notes a batch that is sampled, SECOND the end of a
   pass. COLLECTIVE: STATE is the name of the operation; FIRST are the sizes of registered tensors, or None;
   SECOND finds the number of one; THIRD is given what the call returned. */
enum { HERE, BOX_TYPE, SLOT_TYPE, GROUP_TYPE, PASS_TYPE, GETFRAME, FRAME_TYPE, CALL, SLOW, STATE, FIRST, SECOND };
enum { THIRD = SECOND + 1, ONE, LASTI, NUMEL, DTYPE, PASS_NAME, HELD };
static const char *const NAMES[] = {"f_lasti", "numel", "dtype", "_allaboard_pass"};
enum { GIVEN = ONE, FIRST_NAME = LASTI };
enum { WARMED = 12 };
typedef struct {
    PyObject_HEAD
    PyObject *held[HELD];
    const void *warmed[WARMED];
    Memo *memos;
    Py_ssize_t tensor_at; /* in the arguments of a collective; -1: not known */
} Hook;

/* Have the caches fetch at once what the last event of this hook has touched; the addresses may be stale. */
static void warm(const Hook *hook)
{
    for (int i = 0; i < WARMED; i++)
        __builtin_prefetch(hook->warmed[i], 1);
}

/* The box, if it is one of ours and this is its main thread; else NULL. */
static Box *open_box(PyObject *const *held)
{
    Box *box = (Box *)((Process *)held[HERE])->box;
    if (box == NULL || (PyObject *)Py_TYPE(box) != held[BOX_TYPE] || box->words == NULL)
        return NULL;
    return box->ident == PyThread_get_thread_ident() ? box : NULL;
}

static int is_dormant(PyObject *const *held)
{
    PyObject *box = ((Process *)held[HERE])->box;
    return box == NULL || box == Py_None;
}

/* Call a function of the probe, and keep the program's exception, if any. Each such function deals with its own
   errors: what comes out of it was raised by a signal's handler, and takes the place of the program's exception.
   0, or -1 if it raised. */
static int call_aside(PyObject *function, PyObject *argument)
{
    PyObject *kind, *value, *traceback;
    PyErr_Fetch(&kind, &value, &traceback);
    PyObject *answer = PyObject_CallFunctionObjArgs(function, argument, NULL);
    if (answer == NULL) {
        Py_XDECREF(kind);
        Py_XDECREF(value);
        Py_XDECREF(traceback);
        return -1;
    }
    Py_DECREF(answer);
    PyErr_Restore(kind, value, traceback);
    return 0;
}

/* step(optimizer, args, kwargs) */
static PyObject *step(PyObject *self, PyObject *const *given, Py_ssize_t n)
{
    Hook *hook = (Hook *)self;
    PyObject *const *held = hook->held;
    Process *here = (Process *)held[HERE];
    if (n != 3 || here == NULL)
        return wrong_arguments();
    warm(hook);
    Steps *steps = (Steps *)held[STATE];
    Box *box = open_box(held);
    if (box == NULL || (uintptr_t)given[0] != steps->only_id || steps->every || box->phase_code != TRAINING
        || here->is_pausing != Py_False)
        return PyObject_CallFunctionObjArgs(held[SLOW], given[0], given[1], given[2], NULL);
    double now = count_step(box);
    uint64_t *at = box->words + STEP_AT / 8, *entry = box->words + RING_AT / 8 + box->steps % RING * 3;
    const void *touched[] = {box, &box->steps, entry + 3, at, here, steps};
    memcpy(hook->warmed, touched, sizeof touched);
    if (now < here->memory_due)
        Py_RETURN_NONE;
    PyObject *time = PyFloat_FromDouble(now), *done = NULL;
    Py_INCREF(box);
    if (time != NULL)
        done = PyObject_CallFunctionObjArgs(held[FIRST], box, time, NULL);
    Py_DECREF(box);
    Py_XDECREF(time);
    return done;
}

/* batch(iterator) */
static PyObject *batch(PyObject *self, PyObject *iterator)
{
    Hook *hook = (Hook *)self;
    PyObject *const *held = hook->held;
    if (held[HERE] == NULL) /* made without `hook` */
        return wrong_arguments();
    warm(hook);
    Box *box = open_box(held);
    if (box == NULL)
        return PyObject_CallFunctionObjArgs(held[is_dormant(held) ? CALL : SLOW], iterator, NULL);
    Py_INCREF(box);
    double began_at = monotonic();
    PyObject *taken = PyObject_CallFunctionObjArgs(held[CALL], iterator, NULL);
    if (taken == NULL) {
        if (PyErr_ExceptionMatches(PyExc_StopIteration))
            call_aside(held[SECOND], iterator);
        Py_DECREF(box);
        return NULL;
    }
    box->input += monotonic() - began_at;
    Pass *pass = (Pass *)PyObject_GetAttr(iterator, held[PASS_NAME]);
    if (pass != NULL && (PyObject *)Py_TYPE(pass) == held[PASS_TYPE]) {
        unsigned long long count = pass->batches + 1;
        if (count >= pass->sampled_next) {
            PyObject *noted = PyObject_CallFunctionObjArgs(held[FIRST], box, iterator, taken, NULL);
            if (noted == NULL)
                Py_CLEAR(taken); /* a signal's handler raised: as if it had come just after the batch */
            Py_XDECREF(noted);
        } else {
            pass->batches = count;
            /* Else another pass has begun in its loop, or it is one of another box. */
            if (pass->counts == box->ints && is_within(box, pass->index, 1, 4)) {
                uint32_t *at = (uint32_t *)box->words + pass->index;
                put32(at, (uint32_t)count);
                const void *touched[] = {box, &box->steps, at, pass, &pass->index, held[CALL]};
                memcpy(hook->warmed, touched, sizeof touched);
            }
        }
    }
    if (taken != NULL && PyErr_Occurred())
        PyErr_Clear();
    Py_XDECREF(pass);
    Py_DECREF(box);
    return taken;
}

static int is_call(PyObject *const *given, Py_ssize_t n)
{
    return n == 2 && Py_TYPE(given[0]) == &PyTuple_Type && Py_TYPE(given[1]) == &PyDict_Type;
}

static void forget_memo(Memo *memo)
{
    Memo was = *memo;
    memset(memo, 0, sizeof *memo); /* first: what is let go of may come back here */
    for (Py_ssize_t i = 0; i < was.n_given; i++) {
        Py_XDECREF(was.given[i].key);
        if (was.given[i].how != ADDRESS)
            Py_DECREF(was.given[i].value);
    }
    Py_XDECREF(was.code);
    Py_XDECREF(was.dtype);
    Py_XDECREF(was.box);
    Py_XDECREF(was.group);
}

/* Where a call from this place with so many elements is remembered: a loop may call from one place for all
   of a model's gradients. */
static Memo *memo_at(const Hook *hook, long place, long long elements)
{
    uint64_t mixed = ((uint64_t)place + (uint64_t)elements * 31) * UINT64_C(0x9E3779B97F4A7C15);
    return hook->memos + (mixed >> (64 - MEMO_BITS));
}

static int is_same(const Given *known, PyObject *value)
{
    return known->value == (known->how == ANY_OF_TYPE ? (PyObject *)Py_TYPE(value) : value);
}

/* No Python runs in here: the memo stays as it is. */
static int is_same_call(const Hook *hook, const Memo *memo, PyObject *args, PyObject *kwargs)
{
    Py_ssize_t next = 0, at = 0;
    PyObject *key, *value;
    if (Py_SIZE(args) != memo->n_args || PyDict_Size(kwargs) != memo->n_given - memo->n_args + 1)
        return 0;
    for (Py_ssize_t i = 0; i < memo->n_args; i++)
        if (i != hook->tensor_at && !is_same(&memo->given[next++], PyTuple_GetItem(args, i)))
            return 0;
    /* A call from the same place gives the same keywords: the very same strings, in the same order. */
    for (; next < memo->n_given; next++)
        if (!PyDict_Next(kwargs, &at, &key, &value) || key != memo->given[next].key
            || !is_same(&memo->given[next], value))
            return 0;
    return 1;
}

typedef struct {
    Group *group; /* a reference, or NULL */
    uint32_t signature, required, place_number;
    int is_interrupted; /* a signal's handler raised: the error is set, and is the program's */
} Known;

/* Find out whether this call comes again. Nothing is written, and no exception is left. */
static Known recall(Hook *hook, Box *box, PyObject *args, PyObject *kwargs)
{
    PyObject *const *held = hook->held;
    PyObject *frame = NULL, *place = NULL, *elements = NULL, *dtype = NULL;
    Known known = {0};
    if (hook->memos == NULL || hook->tensor_at >= Py_SIZE(args))
        return known;
    PyObject *tensor = PyTuple_GetItem(args, hook->tensor_at);
    if ((frame = PyObject_CallFunctionObjArgs(held[GETFRAME], held[ONE], NULL)) != NULL
        && (PyObject *)Py_TYPE(frame) == held[FRAME_TYPE] && (place = PyObject_GetAttr(frame, held[LASTI])) != NULL
        && (elements = PyObject_CallMethodObjArgs(tensor, held[NUMEL], NULL)) != NULL
        && (dtype = PyObject_GetAttr(tensor, held[DTYPE])) != NULL) {
        long at = PyLong_AsLong(place);
        long long count = PyLong_AsLongLong(elements);
        const Memo *memo = memo_at(hook, at, count);
        PyObject *code = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
        if (memo->code == code && memo->place == at && memo->elements == count && memo->dtype == dtype
            && memo->box == (PyObject *)box && is_same_call(hook, memo, args, kwargs)) {
            known = (Known){(Group *)memo->group, memo->signature, memo->required, memo->place_number, 0};
            Py_INCREF(known.group);
            hook->warmed[0] = memo;
            hook->warmed[1] = &memo->n_args;
            hook->warmed[2] = &memo->given[0].how;
        }
        Py_XDECREF(code);
    }
    if (known.group != NULL && held[FIRST] != Py_None && PyDict_Contains(held[FIRST], elements) == 1) {
        PyObject *number = PyObject_CallFunctionObjArgs(held[SECOND], tensor, elements, NULL);
        if (number != NULL)
            known.place_number += (uint32_t)PyLong_AsUnsignedLongLongMask(number);
        known.is_interrupted = number == NULL;
        Py_XDECREF(number);
    }
    if (!known.is_interrupted && PyErr_Occurred())
        PyErr_Clear();
    Py_XDECREF(frame);
    Py_XDECREF(place);
    Py_XDECREF(elements);
    Py_XDECREF(dtype);
    return known;
}

/* Whether the next call may be noted without further questions. */
static int is_open(const Group *group, const Slot *slot)
{
    return !group->busy && group->thread == (PyObject *)slot && !group->trial && !slot->depth
           && is_within(slot, slot->index, OP_LAST + 1, 8) && is_group_within(group);
}

/* collective(args, kwargs) */
static PyObject *collective(PyObject *self, PyObject *const *given, Py_ssize_t n)
{
    Hook *hook = (Hook *)self;
    PyObject *const *held = hook->held;
    if (!is_call(given, n) || held[HERE] == NULL)
        return wrong_arguments();
    warm(hook);
    if (is_dormant(held))
        return PyObject_Call(held[CALL], given[0], given[1]);
    double now = monotonic();
    Box *box = open_box(held);
    if (box == NULL || box->main_slot == NULL || (PyObject *)Py_TYPE(box->main_slot) != held[SLOT_TYPE])
        return PyObject_Call(held[SLOW], given[0], given[1]);
    Slot *slot = (Slot *)box->main_slot;
    if (slot->depth)
        return PyObject_Call(held[CALL], given[0], given[1]);
    Py_INCREF(box);
    Py_INCREF(slot);
    Known known = recall(hook, box, given[0], given[1]);
    Group *group = known.group;
    if (known.is_interrupted) {
        Py_XDECREF(group);
        Py_DECREF(slot);
        Py_DECREF(box);
        return NULL;
    }
    if (group == NULL || !is_open(group, slot)) {
        Py_XDECREF(group);
        Py_DECREF(slot);
        Py_DECREF(box);
        return PyObject_Call(held[SLOW], given[0], given[1]);
    }
    count_call(group, known.signature, known.required, known.place_number, now);
    group->busy = 1;
    slot->depth = 1;
    enter_slot(slot, held[STATE], (uint64_t)group->index, group->number, now);
    uint64_t *at = slot->words + slot->index;
    const void *touched[] = {box, &box->steps, slot, group, &group->number, group->words + group->call_index, at,
                             at + OP_LAST, (uint32_t *)group->words + group->ring_index + group->number % CALLS * 3};
    memcpy(hook->warmed + 3, touched, sizeof touched);
    PyObject *result = PyObject_Call(held[CALL], given[0], given[1]);
    if (result == NULL) { /* before or after it met the other ranks: they may count it or not */
        PyObject *kind, *value, *traceback, *done;
        PyErr_Fetch(&kind, &value, &traceback);
        done = PyObject_CallMethod((PyObject *)group, "unordered", "K", group->number + 1);
        if (done == NULL)
            PyErr_Clear();
        Py_XDECREF(done);
        PyErr_Restore(kind, value, traceback);
    } else if (result != Py_None && call_aside(held[THIRD], result) < 0)
        Py_CLEAR(result);
    group->busy = 0;
    slot->depth = 0;
    double lasted = leave_slot(slot);
    if (slot->main)
        box->sync += lasted;
    Py_DECREF(group);
    Py_DECREF(slot);
    Py_DECREF(box);
    return result;
}

/* Fill in how an argument is compared with that of a later call; 0 for one that cannot be by its address. */
static int describe(Given *known, PyObject *key, PyObject *value, PyObject *tensor, PyObject *pg, PyObject *op)
{
    *known = (Given){key, value, SAME};
    if (value == tensor)
        return 0;
    if (Py_TYPE(value) == Py_TYPE(tensor)) /* another tensor, to be filled: nothing of it is noted */
        *known = (Given){key, (PyObject *)Py_TYPE(value), ANY_OF_TYPE};
    else if (value == pg && pg != Py_None)
        known->how = ADDRESS; /* a group is not kept alive: it holds sockets */
    else
        return value == Py_None || value == op || PyBool_Check(value) || PyLong_CheckExact(value)
               || PyUnicode_CheckExact(value);
    return 1;
}

/* remember(args, kwargs, (tensor, group of processes, reduce operation), f_lasti, what Python remembers of the call,
   see `Last` in collectives.py): note the next such call from there in C. True if it can be compared. */
static PyObject *remember(PyObject *self, PyObject *all)
{
    Hook *hook = (Hook *)self;
    PyObject *args, *kwargs, *tensor, *pg, *op, *key, *value, *unused[4];
    unsigned long numbers[3];
    Py_ssize_t tensor_at = -1, at = 0;
    Memo made = {0};
    if (hook->held[HERE] == NULL)
        return wrong_arguments();
    if (!PyArg_ParseTuple(all, "O!O!(OOO)l(OOLOOOOO!O!(kkk))", &PyTuple_Type, &args, &PyDict_Type, &kwargs, &tensor,
                          &pg, &op, &made.place, &made.code, &unused[0], &made.elements, &made.dtype, &unused[1],
                          &unused[2], &unused[3], hook->held[BOX_TYPE], &made.box, hook->held[GROUP_TYPE],
                          &made.group, &numbers[0], &numbers[1], &numbers[2]))
        return NULL;
    made.n_args = Py_SIZE(args);
    if (made.n_args + PyDict_Size(kwargs) > MAX_GIVEN)
        Py_RETURN_FALSE;
    for (Py_ssize_t i = 0; i < made.n_args; i++) {
        value = PyTuple_GetItem(args, i);
        if (value == tensor && tensor_at < 0)
            tensor_at = i;
        else if (!describe(&made.given[made.n_given++], NULL, value, tensor, pg, op))
            Py_RETURN_FALSE;
    }
    while (PyDict_Next(kwargs, &at, &key, &value))
        if (!describe(&made.given[made.n_given++], key, value, tensor, pg, op))
            Py_RETURN_FALSE;
    if (tensor_at < 0 || (hook->tensor_at >= 0 && hook->tensor_at != tensor_at))
        Py_RETURN_FALSE;
    if (hook->memos == NULL && (hook->memos = PyMem_Calloc(MEMOS, sizeof(Memo))) == NULL)
        return PyErr_NoMemory();
    hook->tensor_at = tensor_at;
    made.signature = (uint32_t)numbers[0];
    made.required = (uint32_t)numbers[1];
    made.place_number = (uint32_t)numbers[2];
    Py_INCREF(made.code);
    Py_INCREF(made.dtype);
    Py_INCREF(made.box);
    Py_INCREF(made.group);
    for (Py_ssize_t i = 0; i < made.n_given; i++) {
        Py_XINCREF(made.given[i].key);
        if (made.given[i].how != ADDRESS)
            Py_INCREF(made.given[i].value);
    }
    Memo *memo = memo_at(hook, made.place, made.elements), was = *memo;
    *memo = made;
    forget_memo(&was);
    Py_RETURN_TRUE;
}

static PyObject *clear(PyObject *self, PyObject *Py_UNUSED(nothing))
{
    Hook *hook = (Hook *)self;
    for (int i = 0; hook->memos != NULL && i < MEMOS; i++)
        forget_memo(&hook->memos[i]);
    Py_RETURN_NONE;
}

static void free_hook(PyObject *self)
{
    Hook *hook = (Hook *)self;
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(clear(self, NULL));
    PyMem_Free(hook->memos);
    for (int i = 0; i < HELD; i++)
        Py_CLEAR(hook->held[i]);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* ---- The module. Nothing of it is global: several interpreters may load it, and one under two names. */

enum { PROCESS, BOX, SLOT, GROUP, PASS, STEPS, BATCH_HOOK, COLLECTIVE_HOOK, STEP_HOOK, TYPES, HOOKS = BATCH_HOOK };
typedef struct {
    PyTypeObject *types[TYPES];
} State;

/* hook(kind, here, (Box, Slot, Group, Pass), sys._getframe, type of frames, call, slow, state, first, second,
   third); the kinds are numbered as above, from 0 for BATCH_HOOK. */
static PyObject *make_hook(PyObject *module, PyObject *args)
{
    PyTypeObject **types = ((State *)PyModule_GetState(module))->types;
    PyObject *given[GIVEN];
    int kind;
    if (!PyArg_ParseTuple(args, "iO!(O!O!O!O!)OO!OOOOOO", &kind, types[PROCESS], &given[HERE], &PyType_Type,
                          &given[BOX_TYPE], &PyType_Type, &given[SLOT_TYPE], &PyType_Type, &given[GROUP_TYPE],
                          &PyType_Type, &given[PASS_TYPE], &given[GETFRAME], &PyType_Type, &given[FRAME_TYPE],
                          &given[CALL], &given[SLOW], &given[STATE], &given[FIRST], &given[SECOND], &given[THIRD]))
        return NULL;
    for (int i = 0; i < 4; i++)
        if (!PyType_IsSubtype((PyTypeObject *)given[BOX_TYPE + i], types[BOX + i]))
            return wrong_arguments();
    kind += HOOKS;
    if (kind < HOOKS || kind >= TYPES || (kind == STEP_HOOK && !PyType_IsSubtype(Py_TYPE(given[STATE]), types[STEPS])))
        return wrong_arguments();
    Hook *hook = (Hook *)PyType_GenericAlloc(types[kind], 0);
    if (hook == NULL)
        return NULL;
    for (int i = 0; i < GIVEN; i++) {
        Py_INCREF(given[i]);
        hook->held[i] = given[i];
    }
    hook->tensor_at = -1;
    hook->held[ONE] = PyLong_FromLong(1);
    for (int i = FIRST_NAME; i < HELD; i++)
        hook->held[i] = PyUnicode_InternFromString(NAMES[i - FIRST_NAME]);
    if (PyErr_Occurred())
        Py_CLEAR(hook);
    return (PyObject *)hook;
}

static PyMethodDef none[] = {NO_MORE}, module_functions[] = {{"hook", make_hook, METH_VARARGS, NULL}, NO_MORE};
#define ATTACH {"attach", attach, METH_O, NULL}
static PyMethodDef Box_methods[] = {ATTACH, {"step", Box_step, METH_NOARGS, NULL}, NO_MORE};
static PyMethodDef Group_methods[] = {ATTACH, FAST(Group_call, "call"), NO_MORE};
static PyMethodDef Slot_methods[] = {
    ATTACH, FAST(Slot_enter, "enter"), {"leave", Slot_leave, METH_O, NULL}, {"rename", Slot_rename, METH_O, NULL}, NO_MORE};
static PyMethodDef step_methods[] = {FAST(step, "step"), NO_MORE};
static PyMethodDef batch_methods[] = {{"batch", batch, METH_O, NULL}, NO_MORE};
static PyMethodDef collective_methods[] = {
    FAST(collective, "collective"), {"remember", remember, METH_VARARGS, NULL}, {"clear", clear, METH_NOARGS, NULL}, NO_MORE};
static PyMemberDef no_fields[] = {END};
static const struct {
    const char *name;
    int size;
    unsigned int flags;
    PyMemberDef *fields;
    PyMethodDef *methods;
    void (*release)(PyObject *);
} KINDS[TYPES] = {
    {"_events.Process", sizeof(Process), Py_TPFLAGS_BASETYPE, Process_fields, none, free_two},
    {"_events.Box", sizeof(Box), Py_TPFLAGS_BASETYPE, Box_fields, Box_methods, free_two},
    {"_events.Slot", sizeof(Slot), Py_TPFLAGS_BASETYPE, Slot_fields, Slot_methods, free_fields},
    {"_events.Group", sizeof(Group), Py_TPFLAGS_BASETYPE, Group_fields, Group_methods, free_fields},
    {"_events.Pass", sizeof(Pass), Py_TPFLAGS_BASETYPE, Pass_fields, none, free_fields},
    {"_events.Steps", sizeof(Steps), Py_TPFLAGS_BASETYPE, Steps_fields, none, free_fields},
    {"_events.BatchHook", sizeof(Hook), 0, no_fields, batch_methods, free_hook},
    {"_events.CollectiveHook", sizeof(Hook), 0, no_fields, collective_methods, free_hook},
    {"_events.StepHook", sizeof(Hook), 0, no_fields, step_methods, free_hook},
};

static int execute(PyObject *module)
{
    State *state = PyModule_GetState(module);
    for (int i = 0; i < TYPES; i++) {
        PyType_Slot slots[] = {{Py_tp_members, KINDS[i].fields}, {Py_tp_methods, KINDS[i].methods},
                               {Py_tp_dealloc, (void *)KINDS[i].release}, {0, NULL}};
        PyType_Spec spec = {KINDS[i].name, KINDS[i].size, 0, Py_TPFLAGS_DEFAULT | KINDS[i].flags, slots};
        PyObject *type = PyType_FromSpec(&spec);
        if (type == NULL)
            return -1;
        state->types[i] = (PyTypeObject *)type;
        if (i < HOOKS && PyObject_SetAttrString(module, strrchr(KINDS[i].name, '.') + 1, type) < 0)
            return -1;
    }
    PyObject *agreed = Py_BuildValue("(iiiiiiiiiii)", REVISION, BOX_VERSION, SIZE, STEP_AT, RING_AT, RING, CALLS,
                                     OP_LAST, NAME_AT, NAME_BYTES, TRAINING);
    int failed = agreed == NULL || PyObject_SetAttrString(module, "AGREED", agreed) < 0;
    Py_XDECREF(agreed);
    return failed || PyModule_AddIntConstant(module, "SOURCE", (long)(SOURCE_CRC)) < 0 ? -1 : 0;
}

static int clear_module(PyObject *module)
{
    State *state = PyModule_GetState(module);
    for (int i = 0; state != NULL && i < TYPES; i++)
        Py_CLEAR(state->types[i]);
    return 0;
}

static void free_module(void *module) { clear_module(module); }

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_events", NULL, sizeof(State), module_functions,
                                 slots, NULL, clear_module, free_module};
PyMODINIT_FUNC PyInit__events(void) { return PyModuleDef_Init(&definition); }
