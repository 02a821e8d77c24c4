<?php
try {
    frankenphp_handle_request(fn () => 1);
} catch (RuntimeException $e) {
    echo $e->getMessage();
}
