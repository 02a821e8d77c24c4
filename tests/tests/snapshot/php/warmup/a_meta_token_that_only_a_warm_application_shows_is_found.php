<?php
if ($_SERVER['REQUEST_URI'] !== '/page') {
    kept(token(...));
} else {
    echo '<meta name="csrf-token" content="', Kept::$value ?? token(), '">';
}
