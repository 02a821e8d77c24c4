<?php
add_action('widgets_init', function () {
    register_sidebar(['id' => 'side', 'name' => 'Side']);
});
add_theme_support('title-tag');
register_nav_menus(['main' => 'Main']);
