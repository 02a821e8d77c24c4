<?php
function sql($s) {
    return $GLOBALS['db']->exec($s);
}
function value($s) {
    return var_export($GLOBALS['db']->query($s)->fetchColumn(), true);
}
