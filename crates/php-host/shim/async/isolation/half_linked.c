/* A class is linked when its declaration runs: it inherits from its parent and its interfaces, and an incompatibility
 * is a fatal error. PHP then ends with the request. Here, other requests run the same declaration (for an anonymous
 * class even the same entry in the class table), and PHP would take it for a class whose linking has not begun. Where
 * it expects the names of parent and interfaces, it would find the classes themselves (they share their storage,
 * Zend/zend.h), and would free these as strings. With the names restored, each such request gets the same error as the
 * first one. See zend_do_link_class() in Zend/zend_inheritance.c. */
#include "async/isolation/half_linked.h"

#include "shim.h"

static void repair_parent(zend_class_entry *class) {
    class->parent_name = zend_string_copy(class->parent->name);
    class->ce_flags &= ~ZEND_ACC_RESOLVED_PARENT;
}

/* The list of the classes is leaked: it may be its own or its parent's, and the worker is replaced soon. */
static void repair_interfaces(zend_class_entry *class) {
    zend_class_name *names = safe_emalloc(class->num_interfaces, sizeof *names, 0);
    for (uint32_t i = 0; i < class->num_interfaces; i++) {
        names[i].name = zend_string_copy(class->interfaces[i]->name);
        names[i].lc_name = zend_string_tolower(class->interfaces[i]->name);
    }
    class->interface_names = names;
    class->ce_flags &= ~ZEND_ACC_RESOLVED_INTERFACES;
}

void async_mend_half_linked_classes(void) {
    zval *entry;
    ZEND_HASH_FOREACH_VAL(EG(class_table), entry) {
        zend_class_entry *class = Z_PTR_P(entry);
        if (class->type != ZEND_USER_CLASS || (class->ce_flags & (ZEND_ACC_LINKED | ZEND_ACC_IMMUTABLE)) != 0) {
            continue;
        }
        if ((class->ce_flags & ZEND_ACC_RESOLVED_PARENT) != 0 && class->parent != NULL) {
            repair_parent(class);
        }
        if ((class->ce_flags & ZEND_ACC_RESOLVED_INTERFACES) != 0 && class->num_interfaces > 0) {
            repair_interfaces(class);
        }
    }
    ZEND_HASH_FOREACH_END();
}
